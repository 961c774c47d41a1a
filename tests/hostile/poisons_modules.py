# Promise: modules that a candidate removes are there for the next one.
# Expect: ok raised killed
# Walls: none
import sys


def attack(honest, *arguments):
    result = honest(*arguments)
    sys.modules.clear()
    return result
