# Promise: patching numpy and the problem in the candidate's process does not change the score.
# Expect: ok
import numpy as np

import problems.tsp_construct

np.sqrt = np.linalg.norm = np.sum = lambda *args, **kwargs: 0.0
problems.tsp_construct.TspConstruct.score = lambda self, decisions: (0.0,)


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    return unvisited_nodes[0]
