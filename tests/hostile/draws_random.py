# Promise: generators that a candidate exhausts or seeds start afresh for the next one.
# Expect: ok
# Walls: none
import os
import random

import numpy as np

random.seed(os.urandom(8))
np.random.seed(int.from_bytes(os.urandom(4), "big"))  # noqa: NPY002
random.random = np.random.rand = lambda *shape: 0.0


def attack(honest, *arguments):
    return honest(*arguments)
