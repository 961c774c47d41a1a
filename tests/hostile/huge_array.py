# Promise: one allocation beyond the cap fails in the candidate, not on the host.
# Expect: out_of_memory
import numpy as np


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    return np.ones(10**10)[0]
