# Promise: a candidate cannot create files, not even empty ones.
# Expect: raised
import os
import tempfile


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with open(os.path.join("/tmp", "eoh-esopt-hostile-marker"), "w") as file:
        file.write(tempfile.gettempdir())
    return unvisited_nodes[0]
