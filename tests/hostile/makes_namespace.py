# Promise: a candidate cannot gain capabilities in namespaces of its own.
# Expect: raised
# Walls: seccomp
import ctypes

CLONE_NEWUSER = 0x10000000


def attack(honest, *arguments):
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
        raise PermissionError("refused")
    return honest(*arguments)
