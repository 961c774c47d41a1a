# Promise: a candidate that patches the writing of its own answer has none.
# Expect: killed
# Walls: none
from eoh_esopt.sandbox import frames


def attack(honest, *arguments):
    frames.pack = lambda header, body=b"": b""
    return honest(*arguments)
