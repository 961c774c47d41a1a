# Promise: a candidate cannot start another program.
# Expect: raised
import subprocess


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    subprocess.run(["/bin/sh", "-c", "true"], check=True)
    return unvisited_nodes[0]
