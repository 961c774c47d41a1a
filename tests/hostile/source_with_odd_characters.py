# Promise: form feeds, byte order marks within the text and reversed text are characters like others.
# Expect: ok
# Walls: none
# Tail: "\f# \u202e\u2066 \ufeff \x7f \u200b\n"
def attack(honest, *arguments):
    return honest(*arguments)
