# Promise: memory asked of the kernel directly counts as well.
# Expect: raised
# Walls: none
import mmap


def attack(honest, *arguments):
    return mmap.mmap(-1, 1 << 42)
