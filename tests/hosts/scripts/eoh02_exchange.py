"""A user's script for EoH 0.2 on the problem that our runs search on, for populations that go from one to the other."""

from __future__ import annotations

import json
import multiprocessing
import sys

import eoh02_search
import numpy as np
from eoh import BaseProblem


class Select(BaseProblem):
    template_program = '''
import numpy as np

def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):
    """Select the next node to visit in a tour."""
    return unvisited_nodes[0]
'''
    task_description = "Find the shortest tour. Design a novel rule to select the next node to visit in each step."

    def evaluate_program(self, program_str, callable_func):
        points = np.random.default_rng(1).random((12, 2))
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        tour = [0]
        while len(tour) < len(points):
            left = np.setdiff1d(np.arange(len(points)), tour)
            tour.append(int(callable_func(tour[-1], 0, left, distances)))
        return float(sum(distances[one, two] for one, two in zip(tour, [*tour[1:], 0], strict=True)))


def select(request, number):
    """Another weight, another program."""
    near, back = "distance_matrix[current_node][unvisited_nodes]", "distance_matrix[destination_node][unvisited_nodes]"
    head = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):"
    body = f"    return unvisited_nodes[np.argmin({near} - {number % 97 / 100} * {back})]"
    return f"{{Weigh the way back.}}\n```python\nimport numpy as np\n{head}\n{body}\n```\n"


if __name__ == "__main__":
    import writers

    eoh02_search.Select, writers.select = Select, select
    multiprocessing.set_start_method("fork")
    asked = json.loads(sys.argv[1])
    found = {
        folder: eoh02_search.search(folder, {"problem": "Select", "writer": "select", **options})
        for folder, options in asked.items()
    }
    print()
    print(json.dumps(found))
