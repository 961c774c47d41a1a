"""The fast kernel for the noise of `operators.lowrank` on CPU arrays: one pass, all cores, no noise matrix in memory.

Bit-equal to the plain reference: compiled by numba without fast-math, so products and sums are rounded separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

_TILE = 1024  # columns that a task works on at a time: their sums stay in the first-level cache


@njit(inline="always")
def _sum_up(
    total: Any, products: Any, left: Any, right: Any, row: Any, start: Any, coefficients: Any, scale: Any
) -> None:
    """The update of a row's columns from `start` on, as many as `total` has."""
    count = total.size  # slices below have one dimension and count elements, without which nothing is vectorised
    for j in range(count):
        total[j] = 0
    for g in range(coefficients.size):
        a, b = left[g, row, 0], right[g, 0, start : start + count]
        for j in range(count):
            products[j] = a * b[j]
        for k in range(1, left.shape[2]):
            a, b = left[g, row, k], right[g, k, start : start + count]
            for j in range(count):
                products[j] += a * b[j]
        coefficient = coefficients[g]
        for j in range(count):
            total[j] += coefficient * (products[j] * scale)


@njit(parallel=True, cache=True)
def add_lowrank(
    values: NDArray[np.float32],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    coefficients: NDArray[np.float32],
    scale: np.float32,
) -> None:
    """values[i, j] += d_ij, with d_ij = sum_g coefficients[g] * eps_gij in the order of g.

    Args:
        values: shape (rows, columns).
        left: the factors A, shape (directions, rows, rank).
        right: the factors B transposed, shape (directions, rank, columns).
        coefficients: shape (directions,).
        scale: of the noise, see `operators.lowrank.rank_scale`.
    """
    for row in prange(values.shape[0]):
        sums, spare = np.empty(_TILE, np.float32), np.empty(_TILE, np.float32)
        for start in range(0, values.shape[1], _TILE):
            piece = values[row, start : start + _TILE]
            total, products = sums[: piece.size], spare[: piece.size]
            _sum_up(total, products, left, right, row, start, coefficients, scale)
            for j in range(piece.size):
                piece[j] += total[j]
