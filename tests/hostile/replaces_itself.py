# Promise: a candidate cannot turn into another program.
# Expect: raised
# Walls: seccomp
import os
import sys


def attack(honest, *arguments):
    os.execv(sys.executable, [sys.executable, "-c", "pass"])
