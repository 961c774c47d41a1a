# Promise: a candidate cannot change what the next one imports.
# Expect: raised
import numpy as np


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with open(np.__file__, "a") as file:
        file.write("")
    return unvisited_nodes[0]
