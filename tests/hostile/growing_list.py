# Promise: memory that grows step by step stops at the cap.
# Expect: out_of_memory
def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    hoard = []
    while True:
        hoard.append(bytearray(1 << 20))
