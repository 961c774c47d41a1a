# Promise: a source that holds characters that are no text is refused.
# Expect: syntax
# Walls: none
# Tail: "# \ud800"
def attack(honest, *arguments):
    return honest(*arguments)
