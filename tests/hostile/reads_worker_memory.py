# Promise: the memory of the process that runs the candidate is out of reach.
# Expect: raised
# Walls: landlock
import os


def attack(honest, *arguments):
    with open(f"/proc/{os.getppid()}/mem", "r+b") as file:
        file.read(1)
    return honest(*arguments)
