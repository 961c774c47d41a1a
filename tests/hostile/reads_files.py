# Promise: files that Python does not need cannot be read.
# Expect: raised
def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with open("/etc/passwd") as file:
        return len(file.read())
