# Promise: a candidate cannot change the mode of files it may read.
# Expect: raised
import os

import numpy as np


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.chmod(np.__file__, 0o644)
    return unvisited_nodes[0]
