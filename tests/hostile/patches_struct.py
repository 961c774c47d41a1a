# Promise: decisions packed by a patched function are read as what they are.
# Expect: wrong_shape killed
# Walls: none
import struct


def attack(honest, *arguments):
    struct.pack = lambda form, *values: b"\xff"
    return honest(*arguments)
