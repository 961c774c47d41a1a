"""Classical constructions of vehicle routes: what heuristics for routing compete with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_neighbour(distances: NDArray[np.float64], demands: NDArray[np.float64], capacity: float) -> float:
    """Length of the routes that always go to the nearest customer that is left and fits, else back to the depot.

    Args:
        distances: float64 of shape (n, n), node 0 the depot; the diagonal is not used.
        demands: float64 of shape (n,), none above the capacity.
        capacity: of a vehicle.
    """
    left = np.ones(len(demands), dtype=bool)
    left[0] = False
    node, room, length = 0, capacity, 0.0
    while left.any():
        fitting = left & (demands <= room)
        following = int(np.argmin(np.where(fitting, distances[node], np.inf))) if fitting.any() else 0
        length += float(distances[node, following])
        room = room - float(demands[following]) if following else capacity
        left[following] = False
        node = following
    return length + float(distances[node, 0])


def savings(distances: NDArray[np.float64], demands: NDArray[np.float64], capacity: float) -> float:
    """Length of the routes of Clarke and Wright (1964), parallel version.

    Each customer starts with a route of its own. Ends of routes are joined in descending order of what that saves,
    distances[i, 0] + distances[0, j] - distances[i, j], as long as it is positive and the joined load fits.

    Args:
        distances: symmetric, float64 of shape (n, n), node 0 the depot; the diagonal is not used.
        demands: float64 of shape (n,), none above the capacity.
        capacity: of a vehicle.
    """
    saved = distances[:, :1] + distances[:1] - distances
    first, second = np.triu_indices(len(demands), k=1)
    first, second = first[first > 0], second[first > 0]
    route = {node: [node] for node in range(1, len(demands))}
    length = 2.0 * float(distances[0, 1:].sum())
    for at in np.argsort(-saved[first, second], kind="stable"):
        i, j = int(first[at]), int(second[at])
        one, other = route[i], route[j]
        at_ends = i in (one[0], one[-1]) and j in (other[0], other[-1])
        if saved[i, j] <= 0 or one is other or not at_ends or demands[one + other].sum() > capacity:
            continue
        joined = (one if one[-1] == i else one[::-1]) + (other if other[0] == j else other[::-1])
        route.update(dict.fromkeys(joined, joined))
        length -= float(saved[i, j])
    return length
