# Promise: an integer too long to be printed is refused like any other.
# Expect: wrong_shape not_finite invalid_solution raised
# Walls: none
def attack(honest, *arguments):
    return 10**5000
