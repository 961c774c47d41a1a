# Promise: a candidate that never returns is ended at its deadline.
# Expect: timeout
def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    while True:
        pass
