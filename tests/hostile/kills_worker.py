# Promise: a candidate cannot signal the process that runs it.
# Expect: raised
# Walls: seccomp
import os
import signal


def attack(honest, *arguments):
    os.kill(os.getppid(), signal.SIGKILL)
