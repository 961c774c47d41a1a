# Promise: a parser driven off its stack costs at most the candidate's own process.
# Expect: raised killed out_of_memory
# Walls: none
import json
import sys

sys.setrecursionlimit(10**9)


def attack(honest, *arguments):
    return json.loads("[" * 10**7)
