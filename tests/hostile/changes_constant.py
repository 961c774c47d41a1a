# Promise: a constant that a candidate changes inside the interpreter is right again for the next one.
# Expect: ok
# Walls: none
import ctypes
import math


def attack(honest, *arguments):
    ctypes.c_double.from_address(id(math.pi) + 16).value = 0.0
    ctypes.c_double.from_address(id(math.e) + 16).value = 0.0
    return honest(*arguments)
