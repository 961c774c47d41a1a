# Promise: a crash in native code stays in the candidate's process.
# Expect: killed
import ctypes


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    return ctypes.string_at(0)
