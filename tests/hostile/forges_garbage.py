# Promise: bytes that are no answer cannot raise anything in the parent.
# Expect: killed
import os
import struct


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    header = b"[" * 4000
    os.write(3, struct.pack("!IQ", len(header), 0) + header)
