# Promise: not even the candidate's own working folder is writable.
# Expect: raised
def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with open("note", "w") as file:
        file.write("here")
    return unvisited_nodes[0]
