# Promise: a callback of the garbage collector that never returns is ended at the deadline.
# Expect: timeout
# Walls: none
import gc


def spin(phase, details):
    while True:
        pass


def attack(honest, *arguments):
    gc.callbacks.append(spin)
    gc.set_threshold(1)
    return [[number] for number in range(100)]
