# Promise: a candidate cannot create files, not even empty ones.
# Expect: raised
# Walls: landlock
import pathlib


def attack(honest, *arguments):
    pathlib.Path("/tmp/eoh-esopt-hostile-marker").touch()
    return honest(*arguments)
