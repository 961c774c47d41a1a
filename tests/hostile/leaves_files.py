# Promise: what a candidate manages to leave in its working folder is gone before the next one runs.
# Expect: ok
# Walls: none
import contextlib
import os
import pathlib

with contextlib.suppress(OSError):
    for number in range(10):
        pathlib.Path(f"note-{number}").touch()
        pathlib.Path(f"folder-{number}").mkdir()
    os.chmod(".", 0)


def attack(honest, *arguments):
    return honest(*arguments)
