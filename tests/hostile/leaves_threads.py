# Promise: threads left running do not hold the answer up.
# Expect: ok
import threading


def spin():
    while True:
        pass


threading.Thread(target=spin).start()


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    return unvisited_nodes[0]
