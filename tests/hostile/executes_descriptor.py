# Promise: a candidate cannot turn into a program that it holds open.
# Expect: raised
# Walls: seccomp
import os
import sys


def attack(honest, *arguments):
    program = os.open(sys.executable, os.O_RDONLY)
    os.execve(program, [sys.executable, "-c", "pass"], {})
