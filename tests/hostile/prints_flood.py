# Promise: what a candidate prints goes nowhere and fills nothing.
# Expect: ok
# Walls: none
import sys

for _ in range(30):
    print("x" * 10**6)
    print("x" * 10**6, file=sys.stderr)


def attack(honest, *arguments):
    return honest(*arguments)
