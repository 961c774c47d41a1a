# Promise: a candidate cannot make the kernel signal another process when a pipe becomes readable.
# Expect: raised
# Walls: seccomp
import fcntl
import os


def attack(honest, *arguments):
    fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())
    return honest(*arguments)
