# Promise: there is no talking to local services.
# Expect: raised
import socket


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    socket.socket(socket.AF_UNIX)
    return unvisited_nodes[0]
