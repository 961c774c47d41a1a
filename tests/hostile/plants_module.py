# Promise: a module that a candidate plants is not there for the next one.
# Expect: ok
# Walls: none
import sys
import types

sys.path.insert(0, "/tmp")
sys.modules["scipy"] = sys.modules["random"] = types.ModuleType("planted")


def attack(honest, *arguments):
    return honest(*arguments)
