# Promise: an error that cannot be printed is an error like any other.
# Expect: raised
# Walls: none
class MuteError(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__


def attack(honest, *arguments):
    raise MuteError
