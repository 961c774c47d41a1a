# Promise: recursion without a limit ends at the memory cap or the deadline and takes nothing along.
# Expect: out_of_memory raised killed timeout
# Walls: none
import sys

sys.setrecursionlimit(10**9)


def attack(honest, *arguments):
    return attack(honest, *arguments)
