# Promise: a candidate cannot become another user.
# Expect: raised
# Walls: capabilities
import os


def attack(honest, *arguments):
    os.setuid(os.getuid() + 1)
    return honest(*arguments)
