# Promise: a process that aborts costs only itself.
# Expect: killed
# Walls: none
import os


def attack(honest, *arguments):
    os.abort()
