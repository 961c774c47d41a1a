# Promise: an object that is an honest array when first read and NaN from then on gets nowhere.
# Expect: ok wrong_shape not_finite raised
# Walls: none
import numpy as np


class Shifty:
    def __init__(self, honest):
        self.honest, self.reads = honest, 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        values = np.array(self.honest, dtype=dtype)
        return values if self.reads == 1 else values * np.nan


def attack(honest, *arguments):
    return Shifty(honest(*arguments))
