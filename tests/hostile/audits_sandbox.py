# Promise: a hook that objects to every step of the interpreter stops at most the candidate.
# Expect: ok raised killed
# Walls: none
import sys


def object_to(event, details):
    raise RuntimeError(event)


sys.addaudithook(object_to)


def attack(honest, *arguments):
    return honest(*arguments)
