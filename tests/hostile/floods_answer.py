# Promise: an answer of any size is cut at the cap.
# Expect: wrong_shape
import os
import struct


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.write(3, struct.pack("!IQ", 100, 2**60))
    while True:
        os.write(3, bytes(1 << 16))
