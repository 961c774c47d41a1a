# Promise: no process outlives the evaluation, whatever session it moved to.
# Expect: ok
import contextlib
import os
import time


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    with contextlib.suppress(OSError):
        if os.fork() == 0:
            os.setsid()
            time.sleep(10**6)
    return unvisited_nodes[0]
