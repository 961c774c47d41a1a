# Promise: an array whose every method says that all is well is read as the NaN that it holds.
# Expect: wrong_shape not_finite raised
# Walls: none
import numpy as np


class Flattering(np.ndarray):
    def __array_ufunc__(self, *arguments, **options):
        return np.True_

    def __array_function__(self, *arguments, **options):
        return np.True_

    def all(self, *arguments, **options):
        return np.True_


def attack(honest, *arguments):
    return np.full(np.shape(honest(*arguments)), np.nan).view(Flattering)
