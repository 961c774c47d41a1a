"""Fused kernels for the noise of `operators.noise` on CUDA tensors: one pass over the weights, no temporaries.

Bit-equal to the plain reference, like `kernels` for the CPU. Tensors are flat, contiguous pieces of checkpoint tensors,
`span` says where they lie, and z_j is the noise of the piece's element j. A restore is `live.copy_(master)` and needs
no kernel. Devices without Triton take `torch_noise` instead: ask `available`.
"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from eoh_esopt.models.spans import Span
from eoh_esopt.models.torch_noise import piece_noise
from operators.noise import NORMALS_PER_BLOCK, normal_table, stream_key

_BLOCKS, _WARPS = 256, 4  # two Philox blocks, sixteen weights, per thread
_CAPABILITY = (8, 0)  # the oldest that Triton supports
_MOST_BLOCKS = 2**31 - _BLOCKS
_CHECKED = (
    (Span.whole(4000), torch.bfloat16),
    (Span(64, 32, 96), torch.float16),
    (Span(3, 35, 101), torch.float32),
)


@cache
def available(device: torch.device) -> bool:
    """Whether the kernels serve a device; found out once, by comparing a few thousand weights with the definition.

    False other than on CUDA devices of compute capability 8.0 or more with Triton installed. False with a warning where
    Triton cannot compile (it needs a C compiler) or gives other bits.
    """
    if device.type != "cuda" or torch.version.hip is not None or find_spec("triton") is None:
        return False
    if torch.cuda.get_device_capability(device) < _CAPABILITY:
        return False
    from triton.errors import TritonError

    try:
        trouble = "" if gives_the_definition(device) else "its kernels give other bits than the definition"
    except (TritonError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        trouble = str(error)
    if trouble:
        warnings.warn(f"Triton does not work on {device}: {trouble}. Perturbing more slowly in torch.", stacklevel=2)
    return not trouble


def gives_the_definition(device: torch.device) -> bool:
    """Whether perturbations and updates on a device have the bits of `operators.noise`, for spans of each kind."""
    return all(_agrees(device, span, dtype) for span, dtype in _CHECKED)


def _agrees(device: torch.device, span: Span, dtype: torch.dtype) -> bool:
    seeds, coefficients, sigma, name, size = (2**63 + 1, 2), (0.1, -0.7), 0.3, "weight", 4000
    first, second = (piece_noise(seed, name, span, 0, size, torch.device("cpu")) for seed in seeds)
    master = piece_noise(3, name, span, 0, size, torch.device("cpu"))
    live, moved = torch.empty(size, dtype=dtype, device=device), master.to(device, copy=True)
    perturb(live, moved, seeds[0], sigma, name, span)
    update(moved, seeds, coefficients, False, name, span)
    perturbed = (master + first * sigma).to(dtype)
    updated = master + (first * coefficients[0] + second * coefficients[1])
    return torch.equal(live.cpu(), perturbed) and torch.equal(moved.cpu(), updated)


def fill_noise(out: torch.Tensor, seed: int, name: str, span: Span) -> None:
    """The noise of a piece: out[j] = z_j, float32."""
    from eoh_esopt.models import triton_programs

    _launch(triton_programs.fill_noise, out, (out, _signed(stream_key(seed, name))), span)


def perturb(live: torch.Tensor, master: torch.Tensor, seed: int, sigma: float, name: str, span: Span) -> None:
    """live[j] = cast(master[j] + sigma * z_j).

    Args:
        live: shape (n,), float32, bfloat16 or float16; overwritten.
        master: shape (n,), float32, or `live` itself.
        seed: the direction's.
        sigma: rounded to float32.
        name: canonical checkpoint name of the tensor.
        span: where the piece lies in it.
    """
    from eoh_esopt.models import triton_programs

    key, scale = _signed(stream_key(seed, name)), float(np.float32(sigma))
    _launch(triton_programs.perturb, live, (live, master, key, scale), span)


def update(
    master: torch.Tensor,
    seeds: Sequence[int],
    coefficients: Sequence[float] | NDArray[np.float32],
    multiplicative: bool,
    name: str,
    span: Span,
) -> None:
    """master[j] += d_j, or master[j] *= 1 + d_j, with d_j = sum_i coefficients[i] * z_ij in the order of i.

    Args:
        master: shape (n,), float32.
        seeds: the directions'.
        coefficients: shape (len(seeds),), rounded to float32.
        multiplicative: scale the weights instead of adding to them.
        name: canonical checkpoint name of the tensor.
        span: where the piece lies in it.
    """
    from eoh_esopt.models import triton_programs

    keys = torch.tensor([_signed(stream_key(seed, name)) for seed in seeds], dtype=torch.int64, device=master.device)
    scales = torch.tensor(np.array(coefficients, np.float32), device=master.device)
    arguments = (master, keys, scales, len(seeds))
    _launch(triton_programs.update, master, arguments, span, MULTIPLICATIVE=multiplicative)


def _launch(program: Any, piece: torch.Tensor, arguments: tuple[Any, ...], span: Span, **constants: bool) -> None:
    """Run a program over all blocks that a piece touches.

    Raises:
        ValueError: the piece is too large for 32-bit counting of its blocks.
    """
    size = piece.numel()
    if size == 0:
        return
    run = min(span.run, size)
    rows = -(-size // run)
    edges = (span.first, run, size) if rows == 1 else (span.first, run, size, span.stride)
    whole = all(edge % NORMALS_PER_BLOCK == 0 for edge in edges)
    slack = 0 if whole else NORMALS_PER_BLOCK - 1  # a run may begin at the last element of a block
    per_row = -(-(run + slack) // NORMALS_PER_BLOCK)
    if rows * per_row > _MOST_BLOCKS:
        raise ValueError(f"A piece of {size} weights is too large: cut it into pieces of less than 2**34.")
    grid = (-(-rows * per_row // _BLOCKS),)
    with torch.cuda.device_of(piece):  # type: ignore[no-untyped-call]
        program[grid](
            *arguments,
            _half_table(piece.device),
            span.first,
            run,
            span.stride,
            size,
            per_row,
            **constants,
            BLOCKS=_BLOCKS,
            ONE_ROW=rows == 1,
            WHOLE=whole,
            num_warps=_WARPS,
            enable_fp_fusion=False,
        )


@cache
def _half_table(device: torch.device) -> torch.Tensor:
    """The upper half of the table of normals; the lower is its mirror image with the sign changed."""
    table = normal_table()
    return torch.from_numpy(table[table.size // 2 :].copy()).to(device)


def _signed(key: int) -> int:
    """An unsigned 64-bit number as the signed one of the same bits, which is what kernels and tensors take."""
    return key - 2**64 if key >= 2**63 else key
