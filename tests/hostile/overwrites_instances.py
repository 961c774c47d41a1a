# Promise: decisions are scored on instances that no candidate ever held.
# Expect: ok
# Walls: none
import ctypes
import sys

import numpy as np


def overwrite(self, instance, function):
    decisions = np.array(solve(self, instance, function))
    for values in [instance, *getattr(instance, "__dict__", {}).values()]:
        if isinstance(values, np.ndarray) and values.flags.c_contiguous:
            ctypes.memset(values.ctypes.data, 0, values.nbytes)
    return decisions


frame = sys._getframe()
while "problem" not in frame.f_locals:
    frame = frame.f_back
problem = type(frame.f_locals["problem"])
solve, problem.solve = problem.solve, overwrite


def attack(honest, *arguments):
    return honest(*arguments)
