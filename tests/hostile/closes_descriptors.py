# Promise: closing the answer's descriptor ends the evaluation at once.
# Expect: killed
import os


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.closerange(0, 64)
    while True:
        pass
