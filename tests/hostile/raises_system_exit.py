# Promise: SystemExit is an error like any other.
# Expect: raised
import sys


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    sys.exit(0)
