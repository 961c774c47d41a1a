# Promise: decisions that no driver made are checked like any others.
# Expect: invalid_solution not_finite
# Walls: none
import sys

import numpy as np


def forge(self, instance, function):
    decisions = np.array(solve(self, instance, function))
    decisions[...] = np.nan if decisions.dtype.kind == "f" else -7
    return decisions


frame = sys._getframe()
while "problem" not in frame.f_locals:
    frame = frame.f_back
problem = type(frame.f_locals["problem"])
solve, problem.solve = problem.solve, forge


def attack(honest, *arguments):
    return honest(*arguments)
