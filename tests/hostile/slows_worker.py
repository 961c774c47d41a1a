# Promise: a candidate cannot lower the priority of other processes.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    os.setpriority(os.PRIO_PROCESS, os.getppid(), 1)
    return honest(*arguments)
