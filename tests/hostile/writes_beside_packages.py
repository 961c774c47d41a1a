# Promise: nothing is left beside the packages, in the project or at home.
# Expect: ok
# Walls: landlock
import contextlib
import pathlib
import sys

prefix = pathlib.Path(sys.prefix)
for folder in [prefix, *prefix.parents, pathlib.Path("/root")]:
    with contextlib.suppress(OSError):
        (folder / "eoh-esopt-hostile-marker").touch()


def attack(honest, *arguments):
    return honest(*arguments)
