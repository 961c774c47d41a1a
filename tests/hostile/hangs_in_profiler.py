# Promise: a hook that wakes up in the sandbox's own code is ended at the deadline.
# Expect: timeout
# Walls: none
import sys


def spin(frame, event, argument):
    while frame.f_code.co_filename != "<candidate>":
        pass


def attack(honest, *arguments):
    sys.setprofile(spin)
    return honest(*arguments)
