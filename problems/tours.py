"""Tours through points in the plane: distances, lengths, and the classical constructions heuristics compete with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problems.compiled import compiled


def distance_matrix(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances, float64 of shape (n, n), from coordinates of shape (n, 2)."""
    gaps = points[:, None, :] - points[None, :, :]
    distances: NDArray[np.float64] = np.sqrt((gaps**2).sum(axis=-1))
    return distances


def length(tour: NDArray[np.int64], distances: NDArray[np.float64]) -> float:
    """Length of a closed tour of shape (n,)."""
    return float(distances[tour, np.roll(tour, -1)].sum())


def nearest_neighbour(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """From node 0 always to the nearest node that is left."""
    n = len(distances)
    tour = np.zeros(n, dtype=np.int64)
    left = np.ones(n, dtype=bool)
    left[0] = False
    for step in range(1, n):
        tour[step] = np.argmin(np.where(left, distances[tour[step - 1]], np.inf))
        left[tour[step]] = False
    return tour


@compiled
def farthest_insertion(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """From the two nodes farthest apart: insert the node farthest from the tour where it costs least, until all are in.

    Args:
        distances: symmetric, float64 of shape (n, n), n at least 1.

    Returns:
        A tour, int64 of shape (n,).
    """
    n = len(distances)
    tour = np.zeros(n, dtype=np.int64)
    if n == 1:
        return tour
    widest = max(int(np.argmax(distances)), 1)  # nodes 0 and 1 where all are in one place
    tour[0], tour[1] = widest // n, widest % n
    gap = np.minimum(distances[tour[0]], distances[tour[1]])
    gap[tour[:2]] = -1.0
    for size in range(2, n):
        node = np.argmax(gap)
        place, least = 0, np.inf
        for k in range(size):
            before, after = tour[k], tour[(k + 1) % size]
            cost = distances[before, node] + distances[node, after] - distances[before, after]
            if cost < least:
                place, least = k + 1, cost
        for k in range(size, place, -1):
            tour[k] = tour[k - 1]
        tour[place] = node
        for other in range(n):
            gap[other] = min(gap[other], distances[node, other])
        gap[node] = -1.0
    return tour


@compiled
def two_opt(tour: NDArray[np.int64], distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Reverse stretches of a tour as long as that makes it shorter; each improvement is taken as it is found.

    Args:
        tour: int64 of shape (n,); left as it is.
        distances: symmetric, float64 of shape (n, n).

    Returns:
        A tour that no single reversal shortens, int64 of shape (n,).
    """
    tour, n = tour.copy(), len(tour)
    improved = True
    while improved:
        improved = False
        for i in range(n - 2):
            for j in range(i + 2, n if i else n - 1):
                a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
                now = distances[a, b] + distances[c, d]
                if distances[a, c] + distances[b, d] < now * (1.0 - 1e-12):
                    tour[i + 1 : j + 1] = tour[i + 1 : j + 1][::-1].copy()
                    improved = True
    return tour


def _value_of(build: Callable[[NDArray[np.float64]], NDArray[np.int64]]) -> Callable[[Any], float]:
    """A construction as a baseline of any instance that has its coordinates in `points`."""

    def value(instance: Any) -> float:
        distances = distance_matrix(instance.points)
        return length(build(distances), distances)

    return value


BASELINES: Mapping[str, Callable[[Any], float]] = {
    "nearest neighbour": _value_of(nearest_neighbour),
    "farthest insertion": _value_of(farthest_insertion),
    "farthest insertion + 2-opt": _value_of(lambda distances: two_opt(farthest_insertion(distances), distances)),
}
