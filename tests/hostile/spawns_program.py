# Promise: the short way to start a program is closed too.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    os.posix_spawn("/bin/true", ["true"], {})
    return honest(*arguments)
