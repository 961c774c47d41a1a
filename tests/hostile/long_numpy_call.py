# Promise: a long call inside numpy is ended at the deadline.
# Expect: timeout
# Walls: none
import numpy as np


def attack(honest, *arguments):
    while True:
        np.linalg.eigvals(np.random.default_rng(0).random((1500, 1500)))
