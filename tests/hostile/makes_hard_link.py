# Promise: a candidate cannot give a file another name.
# Expect: raised
# Walls: landlock
import os

import numpy as np


def attack(honest, *arguments):
    os.link(np.__file__, "/tmp/eoh-esopt-hostile-marker")
    return honest(*arguments)
