# Promise: a pool of processes, as heuristics may well start one, is refused like any process.
# Expect: raised
# Walls: seccomp
from concurrent.futures import ProcessPoolExecutor


def attack(honest, *arguments):
    with ProcessPoolExecutor(2) as pool:
        return next(pool.map(abs, [1]))
