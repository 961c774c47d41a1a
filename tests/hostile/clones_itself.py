# Promise: the kernel's own call makes no process either.
# Expect: raised
# Walls: seccomp
import ctypes
import os
import platform
import signal

CLONE = {"x86_64": 56, "aarch64": 220}


def attack(honest, *arguments):
    child = ctypes.CDLL(None).syscall(CLONE[platform.machine()], signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child < 0:
        raise PermissionError("refused")
    return honest(*arguments)
