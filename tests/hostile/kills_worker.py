# Promise: a candidate cannot signal the process that runs it.
# Expect: raised
import os
import signal


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    os.kill(os.getppid(), signal.SIGKILL)
