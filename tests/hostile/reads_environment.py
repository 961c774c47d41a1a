# Promise: no variable of the user's environment is to be seen, neither by Python nor in the process itself.
# Expect: ok
# Walls: none
import contextlib
import os
import re

seen = "\0".join(f"{name}={value}" for name, value in os.environ.items())
with contextlib.suppress(OSError), open("/proc/self/environ") as file:
    seen += "\0" + file.read()
secrets = [text for text in seen.split("\0") if not re.match("$|PYTHON|LC_|LD_LIBRARY_PATH|[A-Z]+_NUM_THREADS", text)]


def attack(honest, *arguments):
    if secrets:
        raise RuntimeError("the environment is there")
    return honest(*arguments)
