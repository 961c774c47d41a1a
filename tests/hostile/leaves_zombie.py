# Promise: a child that ended and was never waited for is cleared away.
# Expect: ok
# Walls: none
import contextlib
import os

with contextlib.suppress(OSError):
    if os.fork() == 0:
        os._exit(0)


def attack(honest, *arguments):
    return honest(*arguments)
