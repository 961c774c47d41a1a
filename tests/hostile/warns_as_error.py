# Promise: warnings turned into errors trouble at most the candidate itself.
# Expect: ok raised
# Walls: none
import warnings

import numpy as np

warnings.simplefilter("error")
np.seterr(all="raise")


def attack(honest, *arguments):
    return honest(*arguments)
