# Promise: an infinite number is no result.
# Expect: not_finite raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.full(np.shape(honest(*arguments)), -np.inf)[()]
