# Promise: closing the answer's descriptor ends the evaluation at once.
# Expect: killed
# Walls: none
import os


def attack(honest, *arguments):
    os.closerange(0, 64)
    while True:
        pass
