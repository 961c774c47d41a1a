# Promise: forged decisions are checked like any others.
# Expect: invalid_solution
import json
import os
import struct


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    header = json.dumps({"status": "ok", "dtype": "int64", "shape": [2, 8]}).encode()
    os.write(3, struct.pack("!IQ", len(header), 128) + header + bytes(128))
