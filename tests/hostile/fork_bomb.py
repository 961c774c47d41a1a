# Promise: a candidate cannot multiply.
# Expect: raised
# Walls: seccomp
import os


def attack(honest, *arguments):
    while True:
        os.fork()
