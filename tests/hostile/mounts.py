# Promise: a candidate cannot mount anything.
# Expect: raised
# Walls: seccomp
import ctypes


def attack(honest, *arguments):
    if ctypes.CDLL(None).mount(b"none", b"/mnt", b"tmpfs", 0, None) < 0:
        raise PermissionError("refused")
    return honest(*arguments)
