# Promise: the memory of the process that runs the candidate is out of reach.
# Expect: raised
import os


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with open(f"/proc/{os.getppid()}/mem", "r+b") as file:
        file.read(1)
    return unvisited_nodes[0]
