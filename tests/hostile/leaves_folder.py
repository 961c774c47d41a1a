# Promise: the folder, the mask of new files and the locks of one candidate are not those of the next.
# Expect: ok
# Walls: none
import contextlib
import fcntl
import os

import numpy as np

os.umask(0)
os.chdir("/")
held = os.open(np.__file__, os.O_RDONLY)
with contextlib.suppress(OSError):
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def attack(honest, *arguments):
    return honest(*arguments)
