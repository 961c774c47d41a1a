# Promise: a crash in native code stays in the candidate's process.
# Expect: killed
# Walls: none
import ctypes


def attack(honest, *arguments):
    return ctypes.string_at(0)
