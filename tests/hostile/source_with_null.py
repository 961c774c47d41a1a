# Promise: a source with a null character is refused.
# Expect: syntax
# Walls: none
# Tail: "\0"
def attack(honest, *arguments):
    return honest(*arguments)
