# Promise: truth values are either refused or used as the numbers they are.
# Expect: ok wrong_shape raised
# Walls: none
# Score: any
import numpy as np


def attack(honest, *arguments):
    return np.ones(np.shape(honest(*arguments)), dtype=bool)[()]
