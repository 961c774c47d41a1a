# Promise: SystemExit is an error like any other.
# Expect: raised
# Walls: none
import sys


def attack(honest, *arguments):
    sys.exit(0)
