# Promise: no process outlives the evaluation, whatever session it moved to.
# Expect: ok
# Walls: none
import contextlib
import os
import time

with contextlib.suppress(OSError):
    if os.fork() == 0:
        os.setsid()
        time.sleep(10**6)


def attack(honest, *arguments):
    return honest(*arguments)
