# Promise: an object that says yes to every comparison is refused all the same.
# Expect: wrong_shape raised
# Walls: none
class Agreeable:
    def __eq__(self, other):
        return True

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    __hash__ = None


def attack(honest, *arguments):
    return Agreeable()
