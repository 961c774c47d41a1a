# Promise: bytes that are no answer cannot raise anything in the parent.
# Expect: killed
# Walls: none
import os
import struct


def attack(honest, *arguments):
    header = b"[" * 4000
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
