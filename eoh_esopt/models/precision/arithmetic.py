"""The arithmetic of directions and updates on one piece of the weights, as `operators.noise` has it, on any device.

Fused kernels do it on the CPU and on CUDA devices that Triton serves, torch's own operations wherever those do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from eoh_esopt.models import kernels, triton_kernels
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.torch_noise import chunks, piece_noise
from operators.noise import normal_table, stream_key
from operators.records import Update


def noise(piece: Piece, seed: int, out: torch.Tensor) -> torch.Tensor:
    """eps of a piece.

    Args:
        piece: n weights.
        seed: the direction's.
        out: shape (n,), float32, on the piece's device; overwritten and returned.
    """
    if piece.lowrank is not None:
        piece.lowrank.add(out.zero_(), [seed], np.ones(1, np.float32))
    elif triton_kernels.available(out.device):
        triton_kernels.fill_noise(out, seed, piece.name, piece.span)
    elif out.device.type == "cpu":
        kernels.fill_noise(array(out), _key(piece, seed), *piece.span.arguments, normal_table())
    else:
        for start, count in chunks(out.numel()):
            out[start : start + count] = _chunk(piece, seed, start, count)
    return out


def perturb(piece: Piece, source: torch.Tensor, seed: int, sigma: float) -> None:
    """live = cast(source + sigma * eps), or cast((source + offset) * (1 + sigma * eps) - offset).

    Args:
        piece: n weights, overwritten.
        source: shape (n,), float32, on the piece's device; may be the live weights themselves.
        seed: the direction's.
        sigma: rounded to float32.
    """
    if piece.lowrank is not None:
        values = source.clone()
        piece.lowrank.add(values, [seed], np.array([sigma], np.float32))
        piece.live.copy_(values)
    elif piece.multiplicative:
        _scale_by_noise(piece, source, seed, sigma)
    else:
        _add_noise(piece, source, seed, sigma)


def add_update(piece: Piece, values: torch.Tensor, update: Update) -> None:
    """values += sum c_i eps_i, or (offset + values) *= 1 + sum c_i eps_i.

    Args:
        piece: n weights, which stay as they are.
        values: shape (m,) with m <= n, float32: numbers in the place of the first weights.
        update: seeds and coefficients.
    """
    coefficients = np.array(update.coefficients, np.float32)
    if piece.lowrank is not None:
        piece.lowrank.add(values, update.noise_seeds, coefficients)
        return
    if piece.offset:
        values += piece.offset
    if triton_kernels.available(values.device):
        seeds, name, span = update.noise_seeds, piece.name, piece.span
        triton_kernels.update(values, seeds, coefficients, piece.multiplicative, name, span)
    elif values.device.type == "cpu":
        keys = np.array([_key(piece, seed) for seed in update.noise_seeds], np.uint64)
        spanned = (*piece.span.arguments, normal_table())
        kernels.update_float32(array(values), keys, coefficients, piece.multiplicative, *spanned)
    else:
        _add_in_torch(piece, values, update.noise_seeds, coefficients)
    if piece.offset:
        values -= piece.offset


def array(tensor: torch.Tensor) -> NDArray[Any]:
    """A CPU tensor's memory as a numpy array: bfloat16 as its uint16 bits."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


def _key(piece: Piece, seed: int) -> np.uint64:
    return np.uint64(stream_key(seed, piece.name))


def _chunk(piece: Piece, seed: int, start: int, count: int) -> torch.Tensor:
    return piece_noise(seed, piece.name, piece.span, start, count, piece.live.device)


def _add_noise(piece: Piece, source: torch.Tensor, seed: int, sigma: float) -> None:
    live = piece.live
    if triton_kernels.available(live.device):
        triton_kernels.perturb(live, source, seed, sigma, piece.name, piece.span)
        return
    if live.device.type == "cpu" and live.dtype in (torch.float32, torch.bfloat16):
        kernel = kernels.perturb_float32 if live.dtype == torch.float32 else kernels.perturb_bfloat16
        spanned = (*piece.span.arguments, normal_table())
        kernel(array(live), array(source), _key(piece, seed), np.float32(sigma), *spanned)
        return
    scale = float(np.float32(sigma))
    for start, count in chunks(live.numel()):
        where = slice(start, start + count)
        live[where] = source[where] + _chunk(piece, seed, start, count).mul_(scale)


def _scale_by_noise(piece: Piece, source: torch.Tensor, seed: int, sigma: float) -> None:
    """Gains are few: plain arithmetic will do."""
    scale = float(np.float32(sigma))
    for start, count in chunks(source.numel()):
        where = slice(start, start + count)
        factors = _chunk(piece, seed, start, count).mul_(scale).add_(1.0)
        piece.live[where] = (source[where] + piece.offset) * factors - piece.offset


def _add_in_torch(piece: Piece, values: torch.Tensor, seeds: Sequence[int], coefficients: NDArray[np.float32]) -> None:
    for start, count in chunks(values.numel()):
        total = torch.zeros(count, dtype=torch.float32, device=values.device)
        for seed, coefficient in zip(seeds, coefficients, strict=True):
            total += _chunk(piece, seed, start, count).mul_(float(coefficient))
        if piece.multiplicative:
            values[start : start + count] *= total.add_(1.0)
        else:
            values[start : start + count] += total
