# Promise: an error whose text never ends is ended at the deadline.
# Expect: timeout
# Walls: none
class EndlessError(Exception):
    def __str__(self):
        while True:
            pass


def attack(honest, *arguments):
    raise EndlessError
