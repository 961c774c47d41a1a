# Promise: an error raised from a hook inside the sandbox's own code counts as the candidate's.
# Expect: raised killed
# Walls: none
import sys


def attack(honest, *arguments):
    result = honest(*arguments)
    sys.settrace(lambda frame, event, argument: 1 / 0)
    return result
