# Promise: a call that stays in native code is ended at the deadline too.
# Expect: timeout
# Walls: none
import collections
import itertools


def attack(honest, *arguments):
    collections.deque(itertools.count(), maxlen=0)
