# Promise: a regular expression that backtracks for ever is ended at the deadline.
# Expect: timeout
# Walls: none
import re


def attack(honest, *arguments):
    return re.match("(a|a)*b", "a" * 99)
