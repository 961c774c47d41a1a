# Promise: a source nested too deeply is refused without harm to the compiler.
# Expect: syntax
# Walls: none
# Tail: "-" * 40000
def attack(honest, *arguments):
    return honest(*arguments)
