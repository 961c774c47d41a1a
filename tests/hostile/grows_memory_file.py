# Promise: a file in memory cannot be filled: its size is capped at nothing.
# Expect: raised
# Walls: none
import os


def attack(honest, *arguments):
    os.ftruncate(os.memfd_create("hoard"), 1 << 20)
    return honest(*arguments)
