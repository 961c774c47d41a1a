# Promise: a candidate cannot tell other processes which core to run on.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))
    return honest(*arguments)
