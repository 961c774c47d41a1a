# Promise: numpy patched in the candidate's process does not change the score.
# Expect: ok
# Walls: none
import numpy as np

real = np.sqrt, np.linalg.norm, np.sum, np.roll


def attack(honest, *arguments):
    np.sqrt, np.linalg.norm, np.sum, np.roll = real
    result = honest(*arguments)
    np.sqrt = np.linalg.norm = np.sum = np.roll = lambda *args, **kwargs: 0.0
    return result
