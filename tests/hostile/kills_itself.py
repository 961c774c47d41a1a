# Promise: a process that kills itself costs only itself.
# Expect: killed
# Walls: none
import os
import signal


def attack(honest, *arguments):
    os.kill(os.getpid(), signal.SIGKILL)
