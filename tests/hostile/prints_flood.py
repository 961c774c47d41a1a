# Promise: what a candidate prints goes nowhere and fills nothing.
# Expect: ok
import sys


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    print("x" * 10**6)
    print("x" * 10**6, file=sys.stderr)
    return unvisited_nodes[0]
