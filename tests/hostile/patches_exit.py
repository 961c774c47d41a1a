# Promise: a candidate that takes the way out away runs none of the sandbox's own code to an effect.
# Expect: ok killed
# Walls: none
import os


def attack(honest, *arguments):
    os._exit = lambda code: None
    return honest(*arguments)
