# Promise: open files are limited, and none is needed for the answer.
# Expect: ok
# Walls: none
import os

opened = 0
while opened < 1000:
    try:
        os.dup(0)
    except OSError:
        break
    opened += 1


def attack(honest, *arguments):
    if opened == 1000:
        raise RuntimeError("no limit on open files")
    return honest(*arguments)
