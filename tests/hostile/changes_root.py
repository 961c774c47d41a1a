# Promise: a candidate cannot move the root of the file system, not even to where it is.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    os.chroot("/")
    return honest(*arguments)
