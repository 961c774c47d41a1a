# Promise: a candidate cannot lift its own limits.
# Expect: raised
import resource


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return unvisited_nodes[0]
