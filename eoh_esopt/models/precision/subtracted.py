"""Restore mode `subtract`, the paper's: no master; noise is added to the live weights and subtracted again."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from operators.records import Direction, Update

SHADOWED = 4096
"""Elements of each piece that drift is measured on."""

_LIMIT = 1 << 20  # elements that are float32 at a time


class SubtractedWeights:
    """The live weights are the true ones, and drift away from what they should be.

    Args:
        piece: n weights.
        shadow: shape (min(n, SHADOWED),), float32: the first of them, moved without rounding to the live dtype.
    """

    host_bytes = 0

    def __init__(self, piece: Piece, shadow: torch.Tensor) -> None:
        self._piece = piece
        self._shadow = shadow

    @property
    def device_bytes(self) -> int:
        """The shadow."""
        return self._shadow.nbytes

    def perturb(self, direction: Direction) -> None:
        """Add the noise."""
        self._add(direction.seed, direction.sigma)

    def restore(self, direction: Direction) -> None:
        """Subtract the noise, which does not give the same bits."""
        self._add(direction.seed, -direction.sigma)

    def update(self, update: Update) -> None:
        """In the live weights, rounded to their dtype, and in the shadow."""
        for _, part in self._piece.parts(_LIMIT):
            values = part.live.to(torch.float32, copy=True)
            arithmetic.add_update(part, values, update)
            part.live.copy_(values)
        arithmetic.add_update(self._piece, self._shadow, update)

    def values(self) -> Iterator[torch.Tensor]:
        """The live weights, in their dtype."""
        yield self._piece.live

    def squared_drift(self) -> tuple[float, int]:
        """Sum of the squared differences between live weights and shadow, and their number."""
        error = self._piece.live[: self._shadow.numel()].to(torch.float64) - self._shadow
        return float(error.square().sum()), self._shadow.numel()

    def _add(self, seed: int, sigma: float) -> None:
        for _, part in self._piece.parts(_LIMIT):
            arithmetic.perturb(part, part.live.to(torch.float32), seed, sigma)
