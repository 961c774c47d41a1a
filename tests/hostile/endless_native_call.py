# Promise: a call that stays in native code is ended at the deadline too.
# Expect: timeout
import collections
import itertools


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    collections.deque(itertools.count(), maxlen=0)
