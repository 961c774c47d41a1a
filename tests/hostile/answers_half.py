# Promise: an answer that is never completed is given up at the deadline.
# Expect: timeout
# Walls: none
import os
import struct
import time


def attack(honest, *arguments):
    os.write(3, struct.pack("!IQ", 100, 1000) + b"{")
    time.sleep(10**6)
