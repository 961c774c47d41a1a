# Promise: a candidate cannot shorten a file it may read; here to the length it has.
# Expect: raised
# Walls: landlock
import os

import numpy as np


def attack(honest, *arguments):
    os.truncate(np.__file__, os.path.getsize(np.__file__))
    return honest(*arguments)
