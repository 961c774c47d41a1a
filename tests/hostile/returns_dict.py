# Promise: a container of another kind is refused.
# Expect: wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    return {0: honest(*arguments)}
