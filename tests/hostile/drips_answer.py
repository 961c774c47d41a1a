# Promise: an answer that comes byte by byte does not put the deadline off.
# Expect: timeout
# Walls: none
import os
import struct
import time


def attack(honest, *arguments):
    os.write(3, struct.pack("!IQ", 100, 5000))
    while True:
        time.sleep(0.02)
        os.write(3, b" ")
