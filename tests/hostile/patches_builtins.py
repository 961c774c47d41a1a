# Promise: what a candidate does to the built-in functions is gone for the next one.
# Expect: ok raised killed
# Walls: none
import builtins


def attack(honest, *arguments):
    result = honest(*arguments)
    builtins.sorted = builtins.sum = builtins.len = builtins.isinstance = builtins.zip = lambda *values: 1
    return result
