# Promise: numbers that a candidate changes inside the interpreter are right again for the next one.
# Expect: ok raised killed timeout wrong_shape invalid_solution not_finite out_of_memory
# Walls: none
# Score: any
import ctypes


def attack(honest, *arguments):
    result = honest(*arguments)
    ctypes.c_uint32.from_address(id(2) + 24).value = 3
    return result
