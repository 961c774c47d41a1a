# Promise: a candidate cannot leave a named pipe that a later reader would hang on.
# Expect: raised
# Walls: landlock
import os


def attack(honest, *arguments):
    os.mkfifo("/tmp/eoh-esopt-hostile-marker")
    return honest(*arguments)
