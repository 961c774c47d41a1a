# Promise: the folder of shared memory is no way to leave a file.
# Expect: raised
# Walls: landlock
import pathlib


def attack(honest, *arguments):
    pathlib.Path("/dev/shm/eoh-esopt-hostile-marker").touch()
    return honest(*arguments)
