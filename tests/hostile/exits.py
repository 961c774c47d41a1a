# Promise: a process that ends before it answers is noticed at once.
# Expect: killed
import os


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os._exit(0)
