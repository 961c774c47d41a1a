# Promise: one allocation beyond the cap fails in the candidate, not on the host.
# Expect: out_of_memory
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.ones(10**12)
