# Promise: an array of 200 MB neither reaches the parent nor costs it time.
# Expect: wrong_shape out_of_memory raised
# Walls: none
import numpy as np


def attack(honest, *arguments):
    return np.zeros(25_000_000)
