# Promise: a candidate that patches the writing of its own answer has none.
# Expect: killed
# Walls: none
from eoh_esopt.sandbox import frames


def attack(honest, *arguments):
    frames.head = lambda header, body_bytes: b""
    return honest(*arguments)
