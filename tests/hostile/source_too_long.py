# Promise: a source beyond all measure is refused.
# Expect: syntax
# Walls: none
# Tail: "# beyond all measure\n" * 100000
def attack(honest, *arguments):
    return honest(*arguments)
