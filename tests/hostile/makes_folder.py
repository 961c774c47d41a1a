# Promise: a candidate cannot make folders.
# Expect: raised
# Walls: landlock
import os


def attack(honest, *arguments):
    os.mkdir("/tmp/eoh-esopt-hostile-marker")
    return honest(*arguments)
