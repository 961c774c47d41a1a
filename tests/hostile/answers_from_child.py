# Promise: a candidate whose parent process ended is either scored as ever or counts as ended.
# Expect: ok killed
# Walls: none
import contextlib
import os

with contextlib.suppress(OSError):
    if os.fork():
        os._exit(0)


def attack(honest, *arguments):
    return honest(*arguments)
