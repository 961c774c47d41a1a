# Promise: a list nested a hundred thousand deep is refused without recursion.
# Expect: wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    nested = []
    for _ in range(100_000):
        nested = [nested]
    return nested
