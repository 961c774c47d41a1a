"""The noise of a direction, defined once: integers and a table, so that every device gives the same bits.

Definition, version 1. For a direction `seed` (64 bits) and a tensor with canonical checkpoint name `name`:

- key = blake2b-64(seed as 8 little-endian bytes, then the name in UTF-8), split into two 32-bit words;
- element j of the whole tensor (row-major) belongs to block j // 8; the block number is the low 64 bits of the
  counter of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011);
- the four words of a block are cut into eight 16-bit numbers, low half first, and element j takes number j % 8;
- the normal is TABLE[number], the number's quantile of the standard normal, scaled to unit variance and rounded to
  a multiple of 2**-20, which float32 holds exactly.

No transcendental function is evaluated per element, and a value depends on (seed, name, j) alone: not on chunking,
threads, shards, dtype or device. This module is the plain reference; fast kernels are checked against it.

Arithmetic on weights is float32, and products and sums are rounded separately (never fused):
perturb: round(w + round(sigma * z)); update: the terms round(c_i * z_i) are added in the order of the directions,
starting from zero, and the total is added to the weight (or, for multiplicative noise, to one, and multiplied).
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

NOISE_VERSION = 1
"""Carried by every history: weights can be replayed only under the definition they were trained with."""

PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10
NORMALS_PER_BLOCK = 8

_TABLE_SHA256 = "e8cfff23047b7e58f6ae180f798c0bd13cfa7a46c5e6db798596865662071226"
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@cache
def normal_table() -> NDArray[np.float32]:
    """The 65,536 quantiles that 16-bit numbers are looked up in.

    Returns:
        Shape (65536,), float32, unit variance, antisymmetric, read-only.

    Raises:
        RuntimeError: the table built here differs from the definition's (a broken SciPy or floating point unit).
    """
    quantiles = ndtri((np.arange(65536) + 0.5) / 65536.0)
    scaled = quantiles / np.sqrt(np.mean(quantiles**2))
    table: NDArray[np.float32] = (np.rint(scaled * 2.0**20) / 2.0**20).astype(np.float32)
    digest = hashlib.sha256(table.astype("<f4").tobytes()).hexdigest()
    if digest != _TABLE_SHA256:
        raise RuntimeError(
            f"The table of normal quantiles has sha256 {digest}, not {_TABLE_SHA256}: this SciPy rounds differently, "
            "so histories would not replay. Install another SciPy release."
        )
    table.setflags(write=False)
    return table


def stream_key(seed: int, name: str) -> int:
    """The 64-bit Philox key of one tensor under one direction.

    Raises:
        ValueError: the seed is not an unsigned 64-bit number.
    """
    if not 0 <= seed < 2**64:
        raise ValueError(f"The direction's seed must be in 0..2**64-1, not {seed}.")
    digest = hashlib.blake2b(seed.to_bytes(8, "little") + name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def philox(key: int, blocks: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Philox4x32-10 at counters (block, 0).

    Args:
        key: 64-bit key.
        blocks: shape (n,), block numbers.

    Returns:
        Shape (n, 4).
    """
    with np.errstate(over="ignore"):
        x0, x1 = blocks & _LOW, blocks >> _32
        x2 = x3 = np.zeros_like(blocks)
        k0, k1 = key & 0xFFFFFFFF, key >> 32
        for _ in range(PHILOX_ROUNDS):
            p0 = x0 * np.uint64(PHILOX_MULTIPLIERS[0])
            p1 = x2 * np.uint64(PHILOX_MULTIPLIERS[1])
            x0, x1, x2, x3 = (
                (p1 >> _32) ^ x1 ^ np.uint64(k0),
                p1 & _LOW,
                (p0 >> _32) ^ x3 ^ np.uint64(k1),
                p0 & _LOW,
            )
            k0, k1 = (k0 + PHILOX_WEYL[0]) & 0xFFFFFFFF, (k1 + PHILOX_WEYL[1]) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3], axis=1).astype(np.uint32)


def noise(seed: int, name: str, start: int, count: int) -> NDArray[np.float32]:
    """Elements start..start+count-1 of a tensor's noise under one direction.

    Returns:
        Shape (count,), float32, mean 0, variance 1.
    """
    first = start // NORMALS_PER_BLOCK
    last = -(-(start + count) // NORMALS_PER_BLOCK)
    words = philox(stream_key(seed, name), np.arange(first, last, dtype=np.uint64))
    numbers = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=2).reshape(-1)
    offset = start - first * NORMALS_PER_BLOCK
    return normal_table()[numbers[offset : offset + count]]


def uniform(seed: int, name: str, start: int, count: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) from the same generator, 53 bits each, two words a number.

    Returns:
        Shape (count,), float64.
    """
    first, last = start // 2, -(-(start + count) // 2)
    words = philox(stream_key(seed, name), np.arange(first, last, dtype=np.uint64)).astype(np.uint64)
    pairs = words.reshape(-1, 2)
    numbers = ((pairs[:, 1] << _32 | pairs[:, 0]) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    offset = start - first * 2
    return numbers[offset : offset + count]
