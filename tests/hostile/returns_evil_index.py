# Promise: an object that is another number each time it is read is refused, or read once.
# Expect: ok wrong_shape not_finite invalid_solution raised
# Walls: none
# Score: any
class Shifty:
    reads = 0

    def __index__(self):
        Shifty.reads += 1
        return 10**Shifty.reads

    __int__ = __index__


def attack(honest, *arguments):
    return Shifty()
