# Promise: an error whose class tells another thing than its name is an error like any other.
# Expect: raised
# Walls: none
class Nameless(type):
    __name__ = property(lambda cls: 10**9)


class NamelessError(Exception, metaclass=Nameless):
    pass


def attack(honest, *arguments):
    raise NamelessError
