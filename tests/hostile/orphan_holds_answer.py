# Promise: a process left behind with the answer's pipe does not make a dead candidate wait for its deadline.
# Expect: killed
# Walls: none
import contextlib
import os
import time


def attack(honest, *arguments):
    with contextlib.suppress(OSError):
        if os.fork() == 0:
            time.sleep(10**6)
    os._exit(0)
