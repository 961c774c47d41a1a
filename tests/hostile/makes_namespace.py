# Promise: a candidate cannot gain capabilities in namespaces of its own.
# Expect: raised
import ctypes

CLONE_NEWUSER = 0x10000000


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
        raise PermissionError("refused")
    return unvisited_nodes[0]
