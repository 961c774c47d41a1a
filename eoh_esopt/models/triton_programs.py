"""The Triton programs that `triton_kernels` launches: device code only, importable where Triton is installed.

A program works on `BLOCKS` Philox blocks, so tiles have the shape (BLOCKS, 8): one thread computes the four words of a
block and looks up its eight normals, and no word is computed twice. Products and sums must be rounded separately, so
every program is to be compiled with `enable_fp_fusion=False`.

Arguments that all programs share: `table` points to the upper half of `operators.noise.normal_table`; `first`, `run`
and `stride` are a `spans.Span`; `size` is the piece's number of elements and `per_row` the number of blocks that one
run touches at most. With `ONE_ROW` the piece is a single run. With `WHOLE` runs begin and end at the edges of blocks:
then all loads and stores are of whole blocks and as wide as the hardware has them.
"""

# Triton reads the annotations of a program as types of its own, so there are none for mypy.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import triton
import triton.language as tl

from operators.noise import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL

_M0, _M1 = tl.constexpr(PHILOX_MULTIPLIERS[0]), tl.constexpr(PHILOX_MULTIPLIERS[1])
_W0, _W1 = tl.constexpr(PHILOX_WEYL[0]), tl.constexpr(PHILOX_WEYL[1])
_ROUNDS = tl.constexpr(PHILOX_ROUNDS)

# Values that differ from launch to launch: specialising on them would only compile the same program again.
_PLAIN = ["key", "directions", "first", "run", "stride", "per_row"]


@triton.jit
def _philox(key, numbers):
    """The four words of blocks; one 32 x 32 to 64 bit multiplication gives both halves of a product."""
    x0, x1 = numbers.to(tl.uint32), (numbers >> 32).to(tl.uint32)
    x2 = tl.zeros_like(x0)
    x3 = x2
    k0, k1 = key.to(tl.uint32), (key >> 32).to(tl.uint32)
    for _ in tl.static_range(_ROUNDS):
        p0, p1 = x0.to(tl.uint64) * _M0, x2.to(tl.uint64) * _M1
        x0, x1 = (p1 >> 32).to(tl.uint32) ^ x1 ^ k0, p1.to(tl.uint32)
        x2, x3 = (p0 >> 32).to(tl.uint32) ^ x3 ^ k1, p0.to(tl.uint32)
        k0 += _W0
        k1 += _W1
    return x0, x1, x2, x3


@triton.jit
def _normals(key, numbers, table, BLOCKS: tl.constexpr):
    """The (BLOCKS, 8) normals of blocks.

    The table is antisymmetric, TABLE[i] = -TABLE[65535 - i], and has no zero, so its upper half and a sign are enough:
    128 KB fit into the first-level cache of data centre GPUs, and 256 KB would not.
    """
    x0, x1, x2, x3 = _philox(key, numbers)
    words = tl.join(tl.join(x0, x2), tl.join(x1, x3))  # [b, i, j] is word 2 i + j of block b
    number = tl.reshape(tl.join(words & 0xFFFF, words >> 16), (BLOCKS, 8)).to(tl.int32)
    upper = number >= 0x8000
    quantile = tl.load(table + (tl.where(upper, number, ~number) & 0x7FFF), eviction_policy="evict_last")
    return tl.where(upper, quantile, -quantile)


@triton.jit
def _places(
    program,
    first,
    run,
    stride,
    size,
    per_row,
    BLOCKS: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """What a program works on: block numbers (BLOCKS,); indices in the piece, and whether they are, (BLOCKS, 8)."""
    k = program * BLOCKS + tl.arange(0, BLOCKS)  # 32 bits, since division of 64 bits is slow
    if ONE_ROW:
        row, column = tl.zeros_like(k).to(tl.int64), k.to(tl.int64)
    else:
        row, column = (k // per_row).to(tl.int64), (k % per_row).to(tl.int64)
    origin = first + row * stride
    numbers = origin // 8 + column
    lane = tl.arange(0, 8)[None, :]
    if WHOLE:
        j = k.to(tl.int64)[:, None] * 8 + lane
        inside = (k.to(tl.int64) * 8 < size)[:, None] & (lane >= 0)
    else:
        place = (column * 8 - origin % 8)[:, None] + lane
        j = (row * run)[:, None] + place
        inside = (place >= 0) & (place < run) & (j < size)
    return numbers, j, inside


@triton.jit
def _rounded(values, dtype: tl.constexpr):
    """float32 values to the nearest of a dtype, ties to even.

    bfloat16 is rounded by hand: Triton's interpreter truncates, and GPUs before compute capability 8.0 have no
    instruction. A NaN must not carry over into a number.
    """
    if dtype == tl.bfloat16:
        bits = values.to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return tl.where(values == values, bits, 0x7FC0).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return values.to(dtype)


@triton.jit(do_not_specialize=_PLAIN)
def fill_noise(
    out,
    key: tl.int64,
    table,
    first: tl.int64,
    run: tl.int64,
    stride: tl.int64,
    size: tl.int64,
    per_row: tl.int32,
    BLOCKS: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """out[j] = z_j."""
    numbers, j, inside = _places(tl.program_id(0), first, run, stride, size, per_row, BLOCKS, ONE_ROW, WHOLE)
    tl.store(out + j, _normals(key, numbers, table, BLOCKS), mask=inside)


@triton.jit(do_not_specialize=_PLAIN)
def perturb(
    live,
    master,
    key: tl.int64,
    sigma: tl.float32,
    table,
    first: tl.int64,
    run: tl.int64,
    stride: tl.int64,
    size: tl.int64,
    per_row: tl.int32,
    BLOCKS: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """live[j] = cast(master[j] + sigma * z_j). `live` and `master` may be the same memory."""
    numbers, j, inside = _places(tl.program_id(0), first, run, stride, size, per_row, BLOCKS, ONE_ROW, WHOLE)
    weights = tl.load(master + j, mask=inside, eviction_policy="evict_first").to(tl.float32)
    moved = weights + sigma * _normals(key, numbers, table, BLOCKS)
    tl.store(live + j, _rounded(moved, live.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=_PLAIN)
def update(
    master,
    keys,
    coefficients,
    directions: tl.int32,
    table,
    first: tl.int64,
    run: tl.int64,
    stride: tl.int64,
    size: tl.int64,
    per_row: tl.int32,
    MULTIPLICATIVE: tl.constexpr,
    BLOCKS: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """master[j] += d_j, or master[j] *= 1 + d_j, with d_j = sum_i coefficients[i] * z_ij in the order of i."""
    numbers, j, inside = _places(tl.program_id(0), first, run, stride, size, per_row, BLOCKS, ONE_ROW, WHOLE)
    total = tl.zeros((BLOCKS, 8), tl.float32)
    for i in range(directions):
        total += tl.load(coefficients + i) * _normals(tl.load(keys + i), numbers, table, BLOCKS)
    weights = tl.load(master + j, mask=inside, eviction_policy="evict_first")
    moved = weights * (1.0 + total) if MULTIPLICATIVE else weights + total
    tl.store(master + j, moved, mask=inside)
