# Promise: there is no ring of requests to the kernel that would pass by the filter.
# Expect: raised
# Walls: seccomp
import ctypes
import errno

IO_URING_SETUP = 425


def attack(honest, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(IO_URING_SETUP, 1, bytes(120))
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError("refused")
    return honest(*arguments)
