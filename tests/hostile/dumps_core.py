# Promise: a candidate cannot make its crash leave a core dump behind.
# Expect: raised
# Walls: seccomp
import ctypes

PR_SET_DUMPABLE = 4


def attack(honest, *arguments):
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0:
        raise PermissionError("refused")
    return honest(*arguments)
