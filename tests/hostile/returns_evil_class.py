# Promise: an object that claims to be a number of numpy's is refused, or checked like one.
# Expect: ok wrong_shape invalid_solution raised
# Walls: none
# Score: any
import numpy as np


class Pretender:
    __class__ = property(lambda self: np.int64)

    def __int__(self):
        return 10**9

    __index__ = __int__


def attack(honest, *arguments):
    return Pretender()
