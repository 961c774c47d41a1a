# Promise: a forged count of calls is cut to what is possible, and decides nothing.
# Expect: ok
# Walls: none
# Score: any
import sys

frame = sys._getframe()
while "progress" not in frame.f_locals:
    frame = frame.f_back
progress = frame.f_locals["progress"]


def attack(honest, *arguments):
    progress._cell[0] = 2**40
    return honest(*arguments)
