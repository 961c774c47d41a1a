# Promise: a candidate cannot change the times of files it may read.
# Expect: raised
# Walls: seccomp
import os

import numpy as np


def attack(honest, *arguments):
    found = os.stat(np.__file__)
    os.utime(np.__file__, ns=(found.st_atime_ns, found.st_mtime_ns))
    return honest(*arguments)
