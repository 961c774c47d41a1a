# Promise: a candidate that uses no CPU is ended at its deadline.
# Expect: timeout
import time


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    time.sleep(10**6)
