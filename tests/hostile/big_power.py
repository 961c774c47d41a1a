# Promise: an integer too large to finish is ended at the deadline.
# Expect: timeout out_of_memory
# Walls: none
def attack(honest, *arguments):
    return 9 ** (len(arguments) + 9) ** 9
