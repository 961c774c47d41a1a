# Promise: an error with characters that are no text can be recorded.
# Expect: raised
# Walls: none
def attack(honest, *arguments):
    raise ValueError("\ud800\udfff\x00\u202e")
