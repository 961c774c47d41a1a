"""Directions by row: while a batch is generated, each row's own noise scales the outputs of the norm layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from eoh_esopt.models.weights import ScopedWeights
from operators.records import Direction


@contextmanager
def row_directions(weights: ScopedWeights, directions: list[Direction | None]) -> Iterator[None]:
    """Inside the block, row i of every batch of len(directions) rows runs under directions[i]."""
    if not any(directions):
        yield
        return
    handles = [
        tensor.module.register_forward_hook(partial(_scale, tensor.row_factors(directions)))
        for tensor in weights.tensors
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _scale(factors: torch.Tensor, module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    scaled = scaled_rows(output, factors)
    if scaled is None:
        rows, size = factors.shape
        raise RuntimeError(f"{type(module).__name__} returned {tuple(output.shape)} for {rows} rows of {size} gains.")
    return scaled


def scaled_rows(output: torch.Tensor, factors: torch.Tensor) -> torch.Tensor | None:
    """Scale each row of a norm layer's output. In a 2-dimensional output the rows' vectors follow one another.

    Args:
        output: shape (rows, ..., gains) or (rows * vectors, gains).
        factors: shape (rows, gains), float32.

    Returns:
        Of the output's shape and dtype; None where the output is not that of so many rows and gains.
    """
    rows, size = factors.shape
    by_row = output.shape[0] == rows or (output.ndim == 2 and output.shape[0] % rows == 0)
    if not by_row or output.shape[-1] != size:
        return None
    scaled = output.reshape(rows, -1, size) * factors[:, None]
    return scaled.to(output.dtype).reshape(output.shape)
