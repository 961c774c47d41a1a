# Promise: there is no network.
# Expect: raised
import socket


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    socket.create_connection(("127.0.0.1", 22), timeout=1)
    return unvisited_nodes[0]
