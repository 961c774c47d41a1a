# Promise: a generator is refused, not run.
# Expect: wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    yield honest(*arguments)
