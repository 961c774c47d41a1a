# Promise: ignoring signals does not put the deadline off.
# Expect: timeout
import contextlib
import signal


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass
