# Promise: a candidate that takes the driver's errors away fails all the same.
# Expect: raised killed
# Walls: none
from eoh_esopt.sandbox import candidate


def attack(honest, *arguments):
    candidate.Failure = candidate.WrongShape = candidate.Status = None
    return 1 / 0
