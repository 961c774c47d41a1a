# Promise: shared segments of other programs are out of reach: not even their number is told.
# Expect: raised
# Walls: seccomp
import ctypes
import errno

SHM_INFO = 14


def attack(honest, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmctl(0, SHM_INFO, ctypes.create_string_buffer(200))
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError("refused")
    return honest(*arguments)
