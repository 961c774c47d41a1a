# Promise: recursion in native code costs at most the candidate's own process.
# Expect: raised killed out_of_memory timeout
# Walls: none
import sys

sys.setrecursionlimit(10**9)


def attack(honest, *arguments):
    nested = []
    for _ in range(200_000):
        nested = [nested]
    return repr(nested)
