# Promise: a candidate cannot make the kernel wait for it at a page fault.
# Expect: raised
# Walls: seccomp
import ctypes
import platform

USERFAULTFD, UFFD_USER_MODE_ONLY = {"x86_64": 323, "aarch64": 282}, 1


def attack(honest, *arguments):
    if ctypes.CDLL(None).syscall(USERFAULTFD[platform.machine()], UFFD_USER_MODE_ONLY) < 0:
        raise PermissionError("refused")
    return honest(*arguments)
