# Promise: NaN in place of a number is found out, wherever a comparison with it would pass.
# Expect: not_finite raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.full(np.shape(honest(*arguments)), np.nan)[()]
