"""Bits of float32 numbers from bfloat16 ones and low halves, for restore mode `residual`, in torch on any device."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from operators.records import Direction


class Bits(Protocol):
    """The arithmetic on one chunk. Results may lie in memory that the next call of the same method writes to."""

    @property
    def limit(self) -> int:
        """Elements that a chunk has at most, whole rows of matrices with low-rank noise aside."""

    def nearest(self, part: Piece, low: torch.Tensor, direction: Direction | None) -> torch.Tensor:
        """The numbers with these low halves that are nearest to the live weights less the direction's noise.

        Args:
            part: n weights.
            low: shape (n,), int16.
            direction: that the live weights are under; None for none.

        Returns:
            Bits of float32 numbers, shape (n,), int32.
        """

    def moved(
        self, bits: torch.Tensor, part: Piece, low: torch.Tensor, direction: Direction
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """bfloat16(true + sigma * eps), and where `nearest` would not find the true weight from it.

        Args:
            bits: of the true weights, shape (n,), int32.
            part: n weights.
            low: their low halves, shape (n,), int16.
            direction: to move along.

        Returns:
            Shape (n,), bfloat16, and shape (n,), bool.
        """

    def split(self, bits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """True weights rounded, their low halves, and where `nearest` would not find them from both.

        Args:
            bits: shape (n,), int32.

        Returns:
            Shapes (n,): bfloat16, int16 and bool.
        """

    def store(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy a chunk."""


class TorchBits:
    """In plain torch: about twenty passes over a chunk."""

    limit = 1 << 22

    def nearest(self, part: Piece, low: torch.Tensor, direction: Direction | None) -> torch.Tensor:
        """See `Bits`."""
        values = part.live.float()
        return _nearest(values if direction is None else values.sub_(_shift(part, direction)), low)

    def moved(
        self, bits: torch.Tensor, part: Piece, low: torch.Tensor, direction: Direction
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Bits`."""
        shift = _shift(part, direction)
        live = (bits.view(torch.float32) + shift).to(torch.bfloat16)
        return live, _nearest(live.float().sub_(shift), low) != bits

    def split(self, bits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See `Bits`."""
        live, low = bits.view(torch.float32).to(torch.bfloat16), bits.to(torch.int16)
        return live, low, _nearest(live.float(), low) != bits

    def store(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """See `Bits`."""
        target.copy_(source)


def _shift(part: Piece, direction: Direction) -> torch.Tensor:
    """sigma * eps in float32."""
    noise = torch.empty(part.live.numel(), dtype=torch.float32, device=part.live.device)
    return arithmetic.noise(part, direction.seed, noise).mul_(float(np.float32(direction.sigma)))


def _nearest(values: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """The number with each low half whose bits are nearest: 16-bit differences wrap round to within half a step."""
    bits = values.view(torch.int32)
    return bits.add_(low - bits.to(torch.int16))
