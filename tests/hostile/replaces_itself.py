# Promise: a candidate cannot turn into another program.
# Expect: raised
import os
import sys


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.execv(sys.executable, [sys.executable, "-c", "pass"])
