# Promise: a candidate cannot change what the next one imports.
# Expect: raised
# Walls: landlock
import numpy as np


def attack(honest, *arguments):
    with open(np.__file__, "a") as file:
        file.write("")
    return honest(*arguments)
