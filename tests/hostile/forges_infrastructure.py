# Promise: a candidate cannot pass its failure off as the sandbox's own and be retried for ever.
# Expect: killed
import json
import os
import struct


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    header = json.dumps({"status": "infrastructure"}).encode()
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
