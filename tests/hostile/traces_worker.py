# Promise: a candidate cannot take hold of the process that runs it as a debugger would.
# Expect: raised
# Walls: seccomp
import ctypes
import os

PTRACE_SEIZE = 0x4206


def attack(honest, *arguments):
    if ctypes.CDLL(None).ptrace(PTRACE_SEIZE, os.getppid(), None, None) < 0:
        raise PermissionError("refused")
    return honest(*arguments)
