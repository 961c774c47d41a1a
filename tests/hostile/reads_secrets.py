# Promise: no variable of the user's environment is to be seen, in this process or in another.
# Expect: ok
import contextlib
import glob
import os


def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    seen = repr(os.environ).encode()
    for path in [*glob.glob("/proc/[0-9]*/environ"), "/proc/self/environ"]:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            seen += file.read()
    if b"EOH_TEST_SECRET" in seen:
        raise RuntimeError("the secret is out")
    return unvisited_nodes[0]
