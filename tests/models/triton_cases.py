"""What the tests of the Triton kernels run in a process of their own, where Triton interprets instead of compiling.

Triton decides when it is imported, by an environment variable that no other test must see. Each case compares with
the plain reference and gives back the number of weights that differ, unless it says otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from benchmarks import es_gpu
from eoh_esopt.models import kernels, triton_kernels, triton_programs
from eoh_esopt.models.spans import Span
from eoh_esopt.models.torch_noise import piece_noise
from operators.noise import noise, normal_table, stream_key

NAME = "model.layers.0.mlp.up_proj.weight"
CPU = torch.device("cpu")
GUARD = 24  # elements beside a piece, which must stay as they are


def filled(seed: int, span: Span, size: int) -> int:
    """`fill_noise`."""
    out, beside = guarded(torch.full((size,), 7.0))
    triton_kernels.fill_noise(out, seed, NAME, span)
    return different(out, torch.from_numpy(reference(seed, span, size))) + beside()


def perturbed(dtype: str, in_place: bool, sigma: float, span: Span, size: int) -> int:
    """`perturb` of weights like a model's, from a master or from the live weights themselves."""
    master = weights(size).to(getattr(torch, dtype) if in_place else torch.float32)
    live, beside = guarded(master.to(getattr(torch, dtype)))
    moved = master.float() + torch.from_numpy(np.float32(sigma) * reference(2**63 + 11, span, size))
    triton_kernels.perturb(live, live if in_place else master, 2**63 + 11, sigma, NAME, span)
    return different(live, moved.to(live.dtype)) + beside()


def cast(dtype: str) -> int:
    """Every kind of float32 number, moved by nothing."""
    patterns = np.arange(2**32, step=65_521 * 64, dtype=np.uint64).astype(np.uint32)
    special = np.array([0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0, 1, 0x477FEFFF, 0x477FF000])
    special = np.concatenate([special, special | 0x80000000]).astype(np.uint32)
    high = np.arange(2**16, dtype=np.uint32)[::97] << 16
    edges = [high | np.uint32(low) for low in (0, 1, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    master = torch.from_numpy(np.concatenate([patterns, special, *edges]).view(np.float32))
    live = torch.empty(master.numel(), dtype=getattr(torch, dtype))
    triton_kernels.perturb(live, master, 5, 0.0, NAME, Span.whole(master.numel()))
    expected = master.to(live.dtype)
    lost = int((live.isnan() != expected.isnan()).sum())
    return lost + int((live != expected)[~expected.isnan()].sum())


def updated(directions: int, multiplicative: bool, span: Span, size: int) -> int:
    """`update` by so many directions."""
    seeds = [2**64 - 1 - 3 * i for i in range(directions)]
    coefficients = [(-1) ** i * 1e-3 / (i + 1) for i in range(directions)]
    master, beside = guarded(weights(size))
    total = np.zeros(size, np.float32)
    for seed, coefficient in zip(seeds, coefficients, strict=True):
        total = total + np.float32(coefficient) * reference(seed, span, size)
    before = weights(size).numpy()
    expected = before * (np.float32(1) + total) if multiplicative else before + total
    triton_kernels.update(master, seeds, coefficients, multiplicative, NAME, span)
    return different(master, torch.from_numpy(expected)) + beside()


def fused_would_differ() -> int:
    """Weights of a perturbation that a fused multiply-add would round to other bits than the definition does."""
    sigma, values, z = np.float32(1e-3), weights(4096).numpy(), noise(5, NAME, 0, 4096)
    fused = (values.astype(np.float64) + np.float64(sigma) * z).astype(np.float32)
    return int((fused != values + sigma * z).sum())


def self_check(key: int | None) -> bool:
    """What `gives_the_definition` says, with right kernels or with ones that use another key."""
    right = triton_kernels._signed
    triton_kernels._signed = right if key is None else lambda _: key  # type: ignore[assignment]
    try:
        return triton_kernels.gives_the_definition(CPU)
    finally:
        triton_kernels._signed = right


def benchmark() -> str:
    """The table of `benchmarks.es_gpu`, for a handful of weights."""
    es_gpu._CALLS, es_gpu._GENERATIONS = 1, (2, 3)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        es_gpu.print_table(*es_gpu.measure(CPU, 3000, repeats=1))
    return printed.getvalue()


def places(program: int, span: Span, size: int, whole: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What one program of a large piece works on, without the piece: blocks, indices, and whether they are in it."""
    blocks = 16
    per_row = span.run // 8 if whole else (span.run + 14) // 8
    numbers = torch.zeros(blocks, dtype=torch.int64)
    j, inside = (torch.zeros(blocks * 8, dtype=torch.int64) for _ in range(2))
    _show_places[(1,)](numbers, j, inside, program, *span.arguments, size, per_row, blocks, size <= span.run, whole)
    return numbers.numpy(), j.numpy(), inside.numpy()


@triton.jit
def _show_places(
    numbers_out: Any,
    j_out: Any,
    inside_out: Any,
    program: Any,
    first: Any,
    run: Any,
    stride: Any,
    size: Any,
    per_row: Any,
    BLOCKS: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WHOLE: tl.constexpr,
) -> None:
    numbers, j, inside = triton_programs._places(program, first, run, stride, size, per_row, BLOCKS, ONE_ROW, WHOLE)
    row = tl.arange(0, BLOCKS)
    tl.store(numbers_out + row, numbers)
    at = row[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(j_out + at, j)
    tl.store(inside_out + at, inside.to(tl.int64))


MODEL = {
    "embed.weight": (torch.bfloat16, Span.whole(3000), 3000),
    "layers.0.qkv.weight": (torch.bfloat16, Span(640, 24, 64), 24 * 50),
    "layers.0.o.weight": (torch.float32, Span(3, 7, 13), 7 * 90),
    "layers.0.norm.weight": (torch.float32, Span.whole(9), 9),
    "head.weight": (torch.bfloat16, Span(2**35 - 16, 2051, 2051), 2051),
}


def replay(back_end: str) -> str:
    """Train a model of a few tensors for three steps; sha256 of all it went through."""
    perturb, update = BACK_ENDS[back_end]
    masters = {name: weights(size) for name, (_, _, size) in MODEL.items()}
    live = {name: masters[name].to(dtype) for name, (dtype, _, _) in MODEL.items()}
    digest = hashlib.sha256()
    for step in range(3):
        seeds = tuple(2**62 * step + i for i in range(3))
        for seed in seeds:
            for name, (_, span, _) in MODEL.items():
                perturb(live[name], masters[name], seed, 1e-2, name, span)
                digest.update(live[name].view(torch.uint8).numpy().data)
        for name, (_, span, _) in MODEL.items():
            update(masters[name], seeds, (3e-3, -2e-3, 7e-5), "norm" in name, name, span)
            live[name].copy_(masters[name])
            digest.update(live[name].view(torch.uint8).numpy().data)
            digest.update(masters[name].numpy().data)
    return digest.hexdigest()


def _numba_perturb(live: torch.Tensor, master: torch.Tensor, seed: int, sigma: float, name: str, span: Span) -> None:
    key, place = np.uint64(stream_key(seed, name)), span.arguments
    if live.dtype == torch.bfloat16:
        bits = live.view(torch.int16).numpy().view(np.uint16)
        kernels.perturb_bfloat16(bits, master.numpy(), key, np.float32(sigma), *place, normal_table())
    else:
        kernels.perturb_float32(live.numpy(), master.numpy(), key, np.float32(sigma), *place, normal_table())


def _numba_update(
    master: torch.Tensor,
    seeds: tuple[int, ...],
    coefficients: tuple[float, ...],
    multiplicative: bool,
    name: str,
    span: Span,
) -> None:
    keys = np.array([stream_key(seed, name) for seed in seeds], np.uint64)
    scales = np.array(coefficients, np.float32)
    kernels.update_float32(master.numpy(), keys, scales, multiplicative, *span.arguments, normal_table())


def _torch_perturb(live: torch.Tensor, master: torch.Tensor, seed: int, sigma: float, name: str, span: Span) -> None:
    live.copy_(master + piece_noise(seed, name, span, 0, live.numel(), CPU) * float(np.float32(sigma)))


def _torch_update(
    master: torch.Tensor,
    seeds: tuple[int, ...],
    coefficients: tuple[float, ...],
    multiplicative: bool,
    name: str,
    span: Span,
) -> None:
    total = torch.zeros_like(master)
    for seed, coefficient in zip(seeds, coefficients, strict=True):
        total += piece_noise(seed, name, span, 0, master.numel(), CPU) * float(np.float32(coefficient))
    if multiplicative:
        master.mul_(total + 1.0)
    else:
        master.add_(total)


BACK_ENDS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "numba": (_numba_perturb, _numba_update),
    "torch": (_torch_perturb, _torch_update),
    "triton": (triton_kernels.perturb, triton_kernels.update),
}


def weights(size: int) -> torch.Tensor:
    """Weights like a model's."""
    return torch.from_numpy(noise(1, "weights", 0, size) * np.float32(0.02))


def reference(seed: int, span: Span, size: int) -> NDArray[np.float32]:
    """A piece's noise, run by run, from the definition."""
    rows = range(-(-size // span.run))
    parts = [noise(seed, NAME, span.first + row * span.stride, min(span.run, size)) for row in rows]
    return np.concatenate(parts)[:size]


def guarded(values: torch.Tensor) -> tuple[torch.Tensor, Callable[[], int]]:
    """A copy of values within a larger tensor, and how many elements beside it have changed since."""
    around = torch.full((values.numel() + 2 * GUARD,), 9.0, dtype=values.dtype)
    inner = around[GUARD : GUARD + values.numel()]
    inner.copy_(values)
    return inner, lambda: int((around[:GUARD] != 9).sum() + (around[GUARD + values.numel() :] != 9).sum())


def different(found: torch.Tensor, expected: torch.Tensor) -> int:
    """Elements whose bits differ."""
    assert found.dtype == expected.dtype
    bits = torch.int32 if found.dtype == torch.float32 else torch.int16
    return int((found.view(bits) != expected.view(bits)).sum())
