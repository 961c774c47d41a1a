# Promise: a type with a name of a hundred thousand characters is refused like any other.
# Expect: wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    return type("x" * 100_000, (), {})()
