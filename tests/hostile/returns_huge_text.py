# Promise: a text of 200 MB neither reaches the parent nor costs it time.
# Expect: wrong_shape out_of_memory raised timeout
# Walls: none
def attack(honest, *arguments):
    return "1" * 200_000_000
