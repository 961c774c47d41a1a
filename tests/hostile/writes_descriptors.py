# Promise: of what a candidate writes to any descriptor, only the answer's arrives, and is no answer.
# Expect: killed
# Walls: none
import contextlib
import os


def attack(honest, *arguments):
    for descriptor in range(21):
        with contextlib.suppress(OSError):
            os.write(descriptor, bytes(100))
    return honest(*arguments)
