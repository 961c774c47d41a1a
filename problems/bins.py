"""Classical packings of items into bins: what heuristics for bin packing compete with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def first_fit_decreasing(sizes: NDArray[np.int64], capacity: int) -> int:
    """Bins used when each item, largest first, goes into the first bin that it fits in.

    Args:
        sizes: of the items, shape (n,), none above the capacity.
        capacity: of a bin.
    """
    room = np.full(len(sizes), capacity)
    for size in np.sort(sizes)[::-1]:
        room[np.argmax(room >= size)] -= size
    return int((room < capacity).sum())


def best_fit_decreasing(sizes: NDArray[np.int64], capacity: int) -> int:
    """Bins used when each item, largest first, goes into the fullest bin that it fits in.

    For the arguments see `first_fit_decreasing`.
    """
    room = np.full(len(sizes), capacity)
    for size in np.sort(sizes)[::-1]:
        room[np.argmin(np.where(room >= size, room, capacity + 1))] -= size
    return int((room < capacity).sum())
