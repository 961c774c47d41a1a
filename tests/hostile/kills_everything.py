# Promise: a candidate cannot signal all processes at once; signal 0 only asks, in case that it can.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    os.kill(-1, 0)
    return honest(*arguments)
