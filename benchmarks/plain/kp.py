"""Constructive knapsack the plain way: an evaluator that deletes from its arrays at each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from problems.kp_construct import KpConstruct

TOLERANCE = 1e-12


def total_value(items: NDArray[np.float64], capacity: float, function: Callable[..., int]) -> float:
    """Value of what `select_next_item` packs until no item fits; ValueError when it takes what does not fit.

    Args:
        items: rows of (weight, value), float64 of shape (n, 2).
        capacity: of the knapsack.
        function: (remaining_capacity, weights, values) -> index.
    """
    weights, values = items[:, 0].copy(), items[:, 1].copy()
    remaining, total = float(capacity), 0.0
    while len(weights) and np.any(weights <= remaining + TOLERANCE):
        index = int(function(remaining, weights.copy(), values.copy()))
        if not 0 <= index < len(weights) or weights[index] > remaining + TOLERANCE:
            raise ValueError(f"index {index} of {len(weights)} items, {remaining} left")
        remaining -= float(weights[index])
        total += float(values[index])
        weights, values = np.delete(weights, index), np.delete(values, index)
    return total


def evaluate(problem: KpConstruct, function: Callable[..., int]) -> float:
    """Mean total value over the instances."""
    items = [(np.column_stack((one.weights, one.values)), one.capacity) for one in problem.instances]
    return float(np.mean([total_value(rows, capacity, function) for rows, capacity in items]))
