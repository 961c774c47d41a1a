# Promise: recursion without a limit ends at the memory cap or the deadline and takes nothing along.
# Expect: out_of_memory raised killed timeout
import sys

sys.setrecursionlimit(10**9)


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    return select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix)
