# Promise: machine code compiled by the candidate is ended at the deadline.
# Expect: timeout
# Walls: none
import numba


@numba.njit
def spin(step):
    total = 0
    while total >= 0:
        total = (total + step) % 1000
    return total


def attack(honest, *arguments):
    return spin(3)
