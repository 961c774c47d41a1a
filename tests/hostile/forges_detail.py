# Promise: a forged message is one harmless line, whatever it is made of.
# Expect: raised
# Walls: none
import json
import os
import struct


def attack(honest, *arguments):
    nested = "\x1b]0;owned\x07\ud800" * 20
    for _ in range(500):
        nested = [nested]
    header = json.dumps({"status": "raised", "detail": nested}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
