# Promise: a candidate that removes its working folder does not take it from the next one.
# Expect: ok
# Walls: none
import contextlib
import os

with contextlib.suppress(OSError):
    os.rmdir(os.getcwd())


def attack(honest, *arguments):
    return honest(*arguments)
