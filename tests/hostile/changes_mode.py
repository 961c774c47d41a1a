# Promise: a candidate cannot change the mode of files it may read.
# Expect: raised
# Walls: seccomp
import os

import numpy as np


def attack(honest, *arguments):
    os.chmod(np.__file__, 0o644)
    return honest(*arguments)
