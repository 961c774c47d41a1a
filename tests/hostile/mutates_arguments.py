# Promise: writing into the arguments does not reach the instances.
# Expect: ok
def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    node = int(unvisited_nodes[0])
    distance_matrix[:] = 0.0
    unvisited_nodes[:] = 0
    return node
