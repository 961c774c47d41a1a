# Promise: shared memory, which would outlive the process, cannot be made.
# Expect: raised
# Walls: landlock
from multiprocessing import shared_memory


def attack(honest, *arguments):
    shared_memory.SharedMemory("eoh-esopt-hostile-marker", create=True, size=1)
    return honest(*arguments)
