# Promise: a long call inside numpy is ended at the deadline.
# Expect: timeout
import numpy as np


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    while True:
        np.linalg.eigvals(np.random.default_rng(0).random((1500, 1500)))
