"""Fast kernels for the noise of `operators.noise`, on flat CPU arrays: one pass, all cores, no temporaries.

Arrays are pieces of checkpoint tensors; `first`, `run` and `stride` say where they lie (see `spans.Span`), and z_j is
the noise of the piece's element j. Each is bit-equal to the plain reference. Compiled by numba without fast-math, so
products and sums are rounded separately, as the definition says. bfloat16 arrays are passed as their uint16 bits and
rounded to nearest even.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from operators.noise import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL

_M0, _M1 = np.uint64(PHILOX_MULTIPLIERS[0]), np.uint64(PHILOX_MULTIPLIERS[1])
_W0, _W1 = np.uint32(PHILOX_WEYL[0]), np.uint32(PHILOX_WEYL[1])
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_HALF, _16, _1 = np.uint32(0xFFFF), np.uint32(16), np.uint32(1)
_TILE = 4096  # elements a task works on at a time: their noise stays in the first-level cache


@njit(inline="always")
def _fill_noise(out: Any, key: Any, first_block: Any, count: Any, table: Any) -> None:
    """Noise of `count` elements from the start of a block into out[:count]."""
    key0, key1 = np.uint32(key & _LOW), np.uint32(key >> _32)
    for block in range((count + 7) // 8):
        number = np.uint64(first_block + block)
        x0, x1 = np.uint32(number & _LOW), np.uint32(number >> _32)
        x2 = x3 = np.uint32(0)
        k0, k1 = key0, key1
        for _ in range(PHILOX_ROUNDS):
            p0 = np.uint64(x0) * _M0
            p1 = np.uint64(x2) * _M1
            x0, x1, x2, x3 = (
                np.uint32(p1 >> _32) ^ x1 ^ k0,
                np.uint32(p1 & _LOW),
                np.uint32(p0 >> _32) ^ x3 ^ k1,
                np.uint32(p0 & _LOW),
            )
            k0 = np.uint32(k0 + _W0)
            k1 = np.uint32(k1 + _W1)
        at = block * 8
        out[at] = table[x0 & _HALF]
        out[at + 1] = table[x0 >> _16]
        out[at + 2] = table[x1 & _HALF]
        out[at + 3] = table[x1 >> _16]
        out[at + 4] = table[x2 & _HALF]
        out[at + 5] = table[x2 >> _16]
        out[at + 6] = table[x3 & _HALF]
        out[at + 7] = table[x3 >> _16]


@njit(inline="always")
def _noise_of(
    values: Any, spare: Any, key: Any, start: Any, count: Any, first: Any, run: Any, stride: Any, table: Any
) -> None:
    """Noise of the piece's elements start .. start + count - 1 into values[:count]; see `spans.Span` for the rest."""
    done = 0
    while done < count:
        row, column = (start + done) // run, (start + done) % run
        length = min(run - column, count - done)
        origin = first + row * stride + column
        skipped = origin % 8
        if skipped == 0:
            _fill_noise(values[done:], key, origin // 8, length, table)
        else:
            _fill_noise(spare, key, origin // 8, length + skipped, table)
            for j in range(length):
                values[done + j] = spare[skipped + j]
        done += length


@njit(inline="always")
def _to_bfloat16(bits: Any) -> Any:
    """Round the bits of a finite float32 to bfloat16, ties to even."""
    return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> _16) & _1)) >> _16)


@njit(parallel=True, cache=True)
def fill_noise(
    out: NDArray[np.float32], key: np.uint64, first: int, run: int, stride: int, table: NDArray[np.float32]
) -> None:
    """The noise of a piece: out[j] = z_j."""
    size = out.size
    for tile in prange((size + _TILE - 1) // _TILE):
        start = tile * _TILE
        count = min(_TILE, size - start)
        values = np.empty(_TILE + 8, np.float32)
        spare = np.empty(_TILE + 16, np.float32)
        _noise_of(values, spare, key, start, count, first, run, stride, table)
        for j in range(count):
            out[start + j] = values[j]


@njit(parallel=True, cache=True)
def perturb_float32(
    live: NDArray[np.float32],
    master: NDArray[np.float32],
    key: np.uint64,
    sigma: np.float32,
    first: int,
    run: int,
    stride: int,
    table: NDArray[np.float32],
) -> None:
    """live[j] = master[j] + sigma * z_j. `live` and `master` may be the same array."""
    size = live.size
    for tile in prange((size + _TILE - 1) // _TILE):
        start = tile * _TILE
        count = min(_TILE, size - start)
        values = np.empty(_TILE + 8, np.float32)
        spare = np.empty(_TILE + 16, np.float32)
        _noise_of(values, spare, key, start, count, first, run, stride, table)
        for j in range(count):
            live[start + j] = master[start + j] + sigma * values[j]


@njit(parallel=True, cache=True)
def perturb_bfloat16(
    live: NDArray[np.uint16],
    master: NDArray[np.float32],
    key: np.uint64,
    sigma: np.float32,
    first: int,
    run: int,
    stride: int,
    table: NDArray[np.float32],
) -> None:
    """live[j] = bfloat16(master[j] + sigma * z_j)."""
    size = live.size
    for tile in prange((size + _TILE - 1) // _TILE):
        start = tile * _TILE
        count = min(_TILE, size - start)
        values = np.empty(_TILE + 8, np.float32)
        spare = np.empty(_TILE + 16, np.float32)
        _noise_of(values, spare, key, start, count, first, run, stride, table)
        for j in range(count):
            values[j] = master[start + j] + sigma * values[j]
        bits = values.view(np.uint32)
        for j in range(count):
            live[start + j] = _to_bfloat16(bits[j])


@njit(parallel=True, cache=True)
def update_float32(
    master: NDArray[np.float32],
    keys: NDArray[np.uint64],
    coefficients: NDArray[np.float32],
    multiplicative: bool,
    first: int,
    run: int,
    stride: int,
    table: NDArray[np.float32],
) -> None:
    """master[j] += d_j, or master[j] *= 1 + d_j, with d_j = sum_i coefficients[i] * z_ij in the order of i."""
    size = master.size
    for tile in prange((size + _TILE - 1) // _TILE):
        start = tile * _TILE
        count = min(_TILE, size - start)
        values = np.empty(_TILE + 8, np.float32)
        spare = np.empty(_TILE + 16, np.float32)
        total = np.zeros(_TILE, np.float32)
        for i in range(keys.size):
            _noise_of(values, spare, keys[i], start, count, first, run, stride, table)
            for j in range(count):
                total[j] += coefficients[i] * values[j]
        if multiplicative:
            for j in range(count):
                master[start + j] *= np.float32(1) + total[j]
        else:
            for j in range(count):
                master[start + j] += total[j]
