# Promise: an answer of any size is cut at the cap.
# Expect: wrong_shape
# Walls: none
import os
import struct


def attack(honest, *arguments):
    os.write(3, struct.pack("!IQ", 100, 2**60))
    while True:
        os.write(3, bytes(1 << 16))
