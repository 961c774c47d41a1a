# Promise: an array of objects is refused, or read as numbers once and for all.
# Expect: wrong_shape raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.full(np.shape(honest(*arguments)), object(), dtype=object)
