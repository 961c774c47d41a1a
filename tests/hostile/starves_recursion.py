# Promise: a candidate that takes away the room for calls fails alone.
# Expect: ok raised killed
# Walls: none
import contextlib
import sys


def attack(honest, *arguments):
    result = honest(*arguments)
    for limit in range(200, 0, -1):
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)
    return result
