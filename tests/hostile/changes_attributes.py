# Promise: a candidate cannot change extended attributes, by the newest call neither.
# Expect: raised
# Walls: seccomp
import ctypes
import errno

import numpy as np

REMOVEXATTRAT, AT_FDCWD = 466, -100


def attack(honest, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(REMOVEXATTRAT, AT_FDCWD, np.__file__.encode(), 0, b"user.not_there")
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError("refused")
    return honest(*arguments)
