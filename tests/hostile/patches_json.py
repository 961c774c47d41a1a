# Promise: a candidate that patches the encoder of its answer cannot choose a label of the sandbox's own.
# Expect: killed
# Walls: none
import json


def attack(honest, *arguments):
    json.dumps = lambda *values, **options: '{"status": "timeout"}'
    return honest(*arguments)
