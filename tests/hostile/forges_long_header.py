# Promise: a header of megabytes is not read.
# Expect: killed
# Walls: none
import struct


def attack(honest, *arguments):
    header = b'{"status": "raised"' + b" " * 10**6 + b"}"
    with open(3, "wb") as answer:
        answer.write(struct.pack("!IQ", len(header), 0) + header)
    while True:
        pass
