# Promise: a candidate that never returns is ended at its deadline.
# Expect: timeout
# Walls: none
def attack(honest, *arguments):
    while True:
        pass
