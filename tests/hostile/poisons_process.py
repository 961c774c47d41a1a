# Promise: what a candidate does to its interpreter is gone for the next one.
# Expect: ok killed
import builtins
import os
import sys


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    node = int(unvisited_nodes[0])
    builtins.sorted = builtins.sum = lambda *values: 1
    sys.modules["numpy"] = None
    os._exit = lambda code: None
    return node
