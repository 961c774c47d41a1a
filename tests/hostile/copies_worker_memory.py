# Promise: the kernel copies nothing out of the memory of another process.
# Expect: raised
# Walls: seccomp
import ctypes
import os


def attack(honest, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.process_vm_readv(os.getppid(), None, 0, None, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return honest(*arguments)
