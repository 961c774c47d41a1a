# Promise: a process that kills itself costs only itself.
# Expect: killed
import os
import signal


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.kill(os.getpid(), signal.SIGKILL)
