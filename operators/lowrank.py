"""Low-rank noise: the second kind of noise, for matrices, made of two thin factors of the first kind.

Definition, version 1. For a direction `seed` and a matrix of shape (m, n) with canonical checkpoint name `name`:

- the factors are A of shape (m, r) and B of shape (n, r), row-major, with the noise of `operators.noise` under the
  names `name + "/A"` and `name + "/B"`;
- p_k = round(A_ik * B_jk) in float32, and s = p_0, then s = round(s + p_k) for k = 1 .. r - 1 in this order;
- eps_ij = round(s * c) with c = 1 / sqrt(r), rounded to float32 (1 for r = 1, which has the one product).

Elements have mean 0 and variance 1 and are uncorrelated, as in the first kind, but only r (m + n) of them are drawn,
so x @ eps.T costs two thin products: (x @ B) @ A.T / sqrt(r). Every sequence of a batch can run under its own direction
that way. The arithmetic on weights is that of `operators.noise`, with this eps in the place of z; a sum of G directions
has rank up to G r. This module is the plain reference; fast kernels are checked against it.
Source: EGGROLL, arXiv 2511.16652.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from operators.noise import noise

LOWRANK_VERSION = 1
"""Carried by the histories of runs with this noise."""

DEFAULT_RANK = 1
"""The cheapest: higher ranks gain no more by an update, see docs/learning.md."""


def factor_names(name: str) -> tuple[str, str]:
    """The names that the factors A and B of a matrix are drawn under."""
    return f"{name}/A", f"{name}/B"


def rank_scale(rank: int) -> np.float32:
    """1 / sqrt(r), rounded to float32, which gives the noise unit variance."""
    return np.float32(1.0 / np.sqrt(rank))


def factors(seed: int, name: str, shape: tuple[int, int], rank: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A and B of one matrix under one direction.

    Returns:
        Shapes (m, r) and (n, r), float32.
    """
    left, right = (
        noise(seed, factor, 0, size * rank).reshape(size, rank)
        for factor, size in zip(factor_names(name), shape, strict=True)
    )
    return left, right


def lowrank_noise(seed: int, name: str, shape: tuple[int, int], rank: int) -> NDArray[np.float32]:
    """The noise of one matrix under one direction.

    Returns:
        Shape (m, n), float32, mean 0, variance 1, rank at most r up to rounding.
    """
    left, right = factors(seed, name, shape, rank)
    total = left[:, :1] * right[:, 0]
    for k in range(1, rank):
        total = total + left[:, k : k + 1] * right[:, k]
    return total * rank_scale(rank)
