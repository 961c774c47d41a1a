# Promise: the environment of other processes, the user's keys among it, cannot be read.
# Expect: ok
# Walls: landlock
import contextlib
import pathlib

seen = b""
for number in range(1, 1000):
    with contextlib.suppress(OSError):
        seen += pathlib.Path(f"/proc/{number}/environ").read_bytes()


def attack(honest, *arguments):
    if seen:
        raise RuntimeError("the environment of another process is there")
    return honest(*arguments)
