# Promise: a candidate cannot claim that its walls did not stand, and be retried.
# Expect: killed
# Walls: none
import json
import os
import struct


def attack(honest, *arguments):
    header = json.dumps({"status": "not_enclosed", "detail": "no wall"}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
