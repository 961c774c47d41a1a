# Promise: a process that stops itself is ended at its deadline.
# Expect: timeout
# Walls: none
import os
import signal


def attack(honest, *arguments):
    os.kill(os.getpid(), signal.SIGSTOP)
