# Promise: an error that steers the terminal is still one harmless line.
# Expect: raised
# Walls: none
class EvilError(Exception):
    def __str__(self):
        return "\x1b[2J\x07" + "\n" * 100 + "x" * 10**6


def attack(honest, *arguments):
    raise EvilError
