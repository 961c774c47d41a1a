"""Fast kernels for the noise of `operators.noise`, on flat CPU arrays: one pass, all cores, no temporaries.

Arrays are pieces of checkpoint tensors; `first`, `run` and `stride` say where they lie (see `spans.Span`), and z_j is
the noise of the piece's element j. Each is bit-equal to the plain reference. Compiled by numba without fast-math, so
products and sums are rounded separately, as the definition says. bfloat16 arrays are passed as their uint16 bits and
rounded to nearest even. They use as many threads as `numba.set_num_threads` says, all cores by default, and are called
from one thread at a time: numba without OpenMP cannot run two of them at once.

What makes them fast: eight Philox blocks are computed together, one in each 64-bit lane, so that the compiler emits
vector multiplications. Their words go through memory, where 16-bit loads take them apart for less than shifts and
gathers in registers. And the words of the next eight are computed beside the table lookups of these, and the weights
fetched, so that the processor's multipliers, its load units and the memory work at the same time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from eoh_esopt.models.prefetch import prefetch
from operators.noise import NORMALS_PER_BLOCK, PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL

_M0, _M1 = np.uint64(PHILOX_MULTIPLIERS[0]), np.uint64(PHILOX_MULTIPLIERS[1])
_W0, _W1 = np.uint64(PHILOX_WEYL[0]), np.uint64(PHILOX_WEYL[1])
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_16, _1, _BELOW_HALF = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)

_LANES = 8  # Philox blocks computed together
_GROUP = _LANES * NORMALS_PER_BLOCK
_GROUP_WORDS = 4 * _LANES
_LINE = 16  # float32 numbers of a cache line
_TILE = 1 << 14  # elements of a task, at most: their noise and their sums stay in the second-level cache


@njit(parallel=True, nogil=True, cache=True)
def fill_noise(
    out: NDArray[np.float32], key: np.uint64, first: int, run: int, stride: int, table: NDArray[np.float32]
) -> None:
    """The noise of a piece: out[j] = z_j."""
    tiles = _tiles(out.size)
    for tile in prange(tiles):
        at, end = _bounds(tile, tiles, out.size)
        z, scratch = _scratch()
        while at < end:
            origin, count = _next_stretch(at, end, first, run, stride)
            values = out[at : at + count]
            skipped = _fill(scratch, origin, count, key, table, values)
            _copy(z[skipped : skipped + count], values)
            at += count


@njit(parallel=True, nogil=True, cache=True)
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
    tiles = _tiles(live.size)
    for tile in prange(tiles):
        at, end = _bounds(tile, tiles, live.size)
        z, scratch = _scratch()
        while at < end:
            origin, count = _next_stretch(at, end, first, run, stride)
            weights = master[at : at + count]
            skipped = _fill(scratch, origin, count, key, table, weights)
            moved = z[skipped : skipped + count]
            _add_scaled(weights, sigma, moved)
            _copy(moved, live[at : at + count])
            at += count


@njit(parallel=True, nogil=True, cache=True)
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
    tiles = _tiles(live.size)
    for tile in prange(tiles):
        at, end = _bounds(tile, tiles, live.size)
        z, scratch = _scratch()
        bits = scratch[0]
        while at < end:
            origin, count = _next_stretch(at, end, first, run, stride)
            weights = master[at : at + count]
            skipped = _fill(scratch, origin, count, key, table, weights)
            _add_scaled(weights, sigma, z[skipped : skipped + count])
            _round_to_bfloat16(bits[skipped : skipped + count], live[at : at + count])
            at += count


@njit(parallel=True, nogil=True, cache=True)
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
    tiles = _tiles(master.size)
    for tile in prange(tiles):
        at, end = _bounds(tile, tiles, master.size)
        z, scratch = _scratch()
        sums = np.empty(_TILE, np.float32)
        while at < end:
            origin, count = _next_stretch(at, end, first, run, stride)
            weights, total = master[at : at + count], sums[:count]
            total[:] = 0
            for i in range(keys.size):
                skipped = _fill(scratch, origin, count, keys[i], table, weights)
                _accumulate(total, coefficients[i], z[skipped : skipped + count])
            _move(weights, total, multiplicative)
            at += count


@njit
def _tiles(size: Any) -> Any:
    """Into how many tiles a piece is divided: a multiple of eight, so that a few threads get as many each."""
    return 8 * ((size + 8 * _TILE - 1) // (8 * _TILE))


@njit
def _bounds(tile: Any, tiles: Any, size: Any) -> Any:
    """(begin, end) of a tile."""
    return tile * size // tiles, (tile + 1) * size // tiles


@njit
def _scratch() -> Any:
    """A tile's memory: its noise, and what `_fill` needs to write it."""
    z, words = np.empty(_TILE + _GROUP, np.float32), np.empty(2 * _GROUP_WORDS, np.uint32)
    return z, (z.view(np.uint32), words, words.view(np.uint16))


@njit
def _next_stretch(at: Any, end: Any, first: Any, run: Any, stride: Any) -> Any:
    """(origin, count): where the piece's element `at` is in the tensor, and how many of the tile go on from there."""
    row, column = at // run, at % run
    return first + row * stride + column, min(run - column, end - at)


@njit
def _fill(scratch: Any, origin: Any, count: Any, key: Any, table: Any, weights: Any) -> Any:
    """Noise of a tensor's elements from `origin` on into z[skipped : skipped + count]; returns `skipped`.

    Bits are moved, not floats: processors load and store more integers at a time. Beside it the weights, which the
    caller goes through next, are brought near.
    """
    z_bits, words, numbers = scratch
    quantiles = table.view(np.uint32)
    block, skipped = origin // NORMALS_PER_BLOCK, origin % NORMALS_PER_BLOCK
    groups = (skipped + count + _GROUP - 1) // _GROUP
    _philox(words, 0, block, key)
    for group in range(groups):
        here = group % 2 * _GROUP_WORDS
        _philox(words, _GROUP_WORDS - here, block + (group + 1) * _LANES, key)
        for line in range(0, _GROUP, _LINE):
            prefetch(weights, group * _GROUP + line)
        for j in range(_GROUP):
            z_bits[np.uint64(group * _GROUP + j)] = quantiles[numbers[np.uint64(2 * here + j)]]
    return skipped


@njit
def _philox(words: Any, at: Any, block: Any, key: Any) -> None:
    """The words of `_LANES` blocks, from `block` on, into words[at : at + 4 * _LANES].

    A word is the low half of a 64-bit lane. What is in the high half does not matter, so nothing clears it.
    """
    for lane in range(_LANES):
        number = np.uint64(block + lane)
        x0, x1 = number, number >> _32
        x2 = x3 = np.uint64(0)
        k0, k1 = key, key >> _32
        for _ in range(PHILOX_ROUNDS):
            p0, p1 = (x0 & _LOW) * _M0, (x2 & _LOW) * _M1
            x0, x1, x2, x3 = (p1 >> _32) ^ x1 ^ k0, p1, (p0 >> _32) ^ x3 ^ k1, p0
            k0, k1 = k0 + _W0, k1 + _W1
        word = np.uint64(at + 4 * lane)
        words[word] = np.uint32(x0)
        words[word + np.uint64(1)] = np.uint32(x1)
        words[word + np.uint64(2)] = np.uint32(x2)
        words[word + np.uint64(3)] = np.uint32(x3)


# The loops below are functions of arrays that begin at 0, or the compiler would not turn them into vector instructions.


@njit
def _copy(source: Any, target: Any) -> None:
    for j in range(target.size):
        target[j] = source[j]


@njit
def _add_scaled(weights: Any, sigma: Any, z: Any) -> None:
    """z = weights + sigma * z."""
    for j in range(z.size):
        z[j] = weights[j] + sigma * z[j]


@njit
def _round_to_bfloat16(bits: Any, out: Any) -> None:
    """The bits of finite float32 numbers rounded to bfloat16, ties to even."""
    for j in range(out.size):
        out[j] = np.uint16((bits[j] + _BELOW_HALF + ((bits[j] >> _16) & _1)) >> _16)


@njit
def _accumulate(total: Any, coefficient: Any, z: Any) -> None:
    for j in range(total.size):
        total[j] += coefficient * z[j]


@njit
def _move(weights: Any, total: Any, multiplicative: Any) -> None:
    if multiplicative:
        for j in range(total.size):
            weights[j] *= np.float32(1) + total[j]
    else:
        for j in range(total.size):
            weights[j] += total[j]
