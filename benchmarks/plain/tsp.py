"""Constructive travelling salesman the plain way: an evaluator that looks for the unvisited nodes anew at each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from problems.tsp_construct import TspConstruct

NEIGHBOURS = 50


def tour_length(points: NDArray[np.float64], function: Callable[..., int]) -> float:
    """Length of the tour that `select_next_node` builds from node 0; ValueError when it takes a node twice.

    Args:
        points: coordinates, float64 of shape (n, 2).
        function: (current_node, destination_node, unvisited_nodes, distance_matrix) -> node id.
    """
    n = len(points)
    distances = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    neighbours = np.argsort(distances, axis=1, kind="stable")
    route = np.zeros(n, dtype=np.int64)
    for step in range(1, n - 1):
        current = route[step - 1]
        near = neighbours[current]
        near = near[~np.isin(near, route[:step])][:NEIGHBOURS]
        node = int(function(int(current), 0, near.copy(), distances.copy()))
        if node in route[:step] or not 0 <= node < n:
            raise ValueError(f"node {node} at step {step}")
        route[step] = node
    rest = np.arange(n)
    route[-1] = rest[~np.isin(rest, route[:-1])][0]
    length = 0.0
    for here, there in zip(route, np.roll(route, -1), strict=True):
        length += float(distances[here, there])
    return length


def evaluate(problem: TspConstruct, function: Callable[..., int]) -> float:
    """Mean tour length over the instances."""
    return float(np.mean([tour_length(one.points, function) for one in problem.instances]))
