# Promise: a function that forgets to return is told so.
# Expect: wrong_shape raised
# Walls: none
def attack(honest, *arguments):
    honest(*arguments)
