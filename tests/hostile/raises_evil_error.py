# Promise: an error that cannot be printed, or that steers the terminal, is still one harmless line.
# Expect: raised
class EvilError(Exception):
    def __str__(self):
        return "\x1b[2J\x07" + "\n" * 100 + "x" * 10**6


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    raise EvilError
