# Promise: a candidate cannot pass its failure off as the sandbox's own and be retried for ever.
# Expect: killed
# Walls: none
import json
import os
import struct


def attack(honest, *arguments):
    header = json.dumps({"status": "infrastructure"}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
