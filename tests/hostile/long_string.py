# Promise: a text beyond the cap fails in the candidate, not on the host.
# Expect: out_of_memory
# Walls: none
def attack(honest, *arguments):
    return "x" * 10**12
