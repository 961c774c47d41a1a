# Promise: a candidate cannot cut the tie that ends it together with its worker.
# Expect: raised
import ctypes

PR_SET_PDEATHSIG = 1


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0:
        raise PermissionError("refused")
    return unvisited_nodes[0]
