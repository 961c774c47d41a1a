# Promise: a candidate cannot change the flags of a file that it opened for reading; here to those it has.
# Expect: raised
# Walls: seccomp
import fcntl

import numpy as np

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602


def attack(honest, *arguments):
    with open(np.__file__) as file:
        flags = fcntl.ioctl(file, FS_IOC_GETFLAGS, bytes(8))
        fcntl.ioctl(file, FS_IOC_SETFLAGS, flags)
    return honest(*arguments)
