# Promise: complex numbers are refused.
# Expect: wrong_shape raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.full(np.shape(honest(*arguments)), 1j)[()]
