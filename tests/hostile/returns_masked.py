# Promise: an array that hides its values behind a mask is refused, or its values are checked.
# Expect: wrong_shape not_finite raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    values = np.full(np.shape(honest(*arguments)), np.nan)
    return np.ma.array(values, mask=np.ones(values.shape, dtype=bool))
