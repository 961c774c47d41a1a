# Promise: a score written on the answer's descriptor counts for nothing: decisions are scored.
# Expect: wrong_shape
import json
import os
import struct


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    header = json.dumps({"status": "ok", "objective": 0.0, "per_instance": [0.0, 0.0]}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
