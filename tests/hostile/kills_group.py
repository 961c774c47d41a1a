# Promise: a candidate that kills its process group hits no process but its own.
# Expect: raised killed
# Walls: none
import os
import signal


def attack(honest, *arguments):
    os.killpg(0, signal.SIGKILL)
