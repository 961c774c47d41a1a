# Promise: a process that ends before it answers is noticed at once.
# Expect: killed
# Walls: none
import os


def attack(honest, *arguments):
    os._exit(0)
