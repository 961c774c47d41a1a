# Promise: a candidate cannot load a program into the kernel.
# Expect: raised
# Walls: seccomp
import ctypes
import errno
import platform

BPF = {"x86_64": 321, "aarch64": 280}


def attack(honest, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(BPF[platform.machine()], 0, None, 0)
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError("refused")
    return honest(*arguments)
