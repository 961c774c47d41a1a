# Promise: a candidate that uses no CPU is ended at its deadline.
# Expect: timeout
# Walls: none
import time


def attack(honest, *arguments):
    time.sleep(10**6)
