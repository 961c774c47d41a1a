# Promise: a score written on the answer's descriptor counts for nothing: decisions are scored.
# Expect: wrong_shape
# Walls: none
import json
import os
import struct


def attack(honest, *arguments):
    header = json.dumps({"status": "ok", "objective": 0.0, "per_instance": [0.0, 0.0]}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
