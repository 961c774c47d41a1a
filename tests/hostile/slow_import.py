# Promise: an import that never ends is ended at the deadline.
# Expect: timeout
# Walls: none
import sys
import time


class Sleeper:
    def find_spec(self, name, path=None, target=None):
        time.sleep(10**6)


sys.meta_path.insert(0, Sleeper())


def attack(honest, *arguments):
    import fractions_of_nothing

    return fractions_of_nothing
