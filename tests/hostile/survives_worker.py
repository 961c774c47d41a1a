# Promise: a candidate cannot cut the tie that ends it together with its worker.
# Expect: raised
# Walls: seccomp
import ctypes

PR_SET_PDEATHSIG = 1


def attack(honest, *arguments):
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0:
        raise PermissionError("refused")
    return honest(*arguments)
