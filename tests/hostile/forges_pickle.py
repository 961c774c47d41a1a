# Promise: nothing that a candidate writes is unpickled.
# Expect: wrong_shape killed
# Walls: none
import json
import os
import pickle
import struct


class Evil:
    def __reduce__(self):
        return os.mkdir, ("/tmp/eoh-esopt-hostile-marker",)


def attack(honest, *arguments):
    body = pickle.dumps(Evil())
    header = json.dumps({"status": "ok", "dtype": "object", "shape": [1]}).encode()
    os.write(3, struct.pack("!IQ", len(header), len(body)) + header + body)
