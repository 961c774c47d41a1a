# Promise: an array of another shape is refused.
# Expect: wrong_shape raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.ones((2, 3, 4, 5))
