# Promise: writing into the arguments does not reach the instances.
# Expect: ok
# Walls: none
# Score: any
import contextlib

import numpy as np


def attack(honest, *arguments):
    result = np.copy(honest(*arguments))[()]
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            with contextlib.suppress(ValueError):
                argument[...] = 0
    return result
