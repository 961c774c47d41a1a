"""Tours through points in the plane: distances, lengths, and the classical constructions heuristics compete with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def _value_of(build: Callable[[NDArray[np.float64]], NDArray[np.int64]]) -> Callable[[Any], float]:
    """A construction as a baseline of any instance that has its coordinates in `points`."""

    def value(instance: Any) -> float:
        distances = distance_matrix(instance.points)
        return length(build(distances), distances)

    return value


BASELINES: Mapping[str, Callable[[Any], float]] = {"nearest neighbour": _value_of(nearest_neighbour)}
