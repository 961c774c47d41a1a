# Promise: a candidate cannot leave a link for others to follow.
# Expect: raised
# Walls: landlock
import os


def attack(honest, *arguments):
    os.symlink("/etc/passwd", "/tmp/eoh-esopt-hostile-marker")
    return honest(*arguments)
