# Promise: a number written as text is no number.
# Expect: ok wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    return str(honest(*arguments))
