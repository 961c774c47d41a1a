"""Restore mode `exact`: float32 masters beside the live weights, which are a cast of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from operators.records import Direction, Update


class ExactWeights:
    """True weights in float32 on the live weights' device: 4 bytes a weight, the fastest mode.

    Args:
        piece: n weights.
        master: shape (n,), float32, on their device: the true weights.
        buffer: the live weights are a buffer that holds them only while they are moved.
    """

    host_bytes = 0

    def __init__(self, piece: Piece, master: torch.Tensor, buffer: bool = False) -> None:
        self._piece = piece
        self._master = master
        equal = piece.live.dtype == master.dtype and not buffer
        self._source = piece.live if equal else master  # in place takes a third less traffic

    @property
    def device_bytes(self) -> int:
        """The masters."""
        return self._master.nbytes

    def perturb(self, direction: Direction) -> None:
        """One pass: read the masters, or the live weights where they are equal, and write the live weights."""
        arithmetic.perturb(self._piece, self._source, direction.seed, direction.sigma)

    def restore(self, direction: Direction) -> None:
        """A cast."""
        self._piece.live.copy_(self._master)

    def update(self, update: Update) -> None:
        """In the masters, then a cast."""
        arithmetic.add_update(self._piece, self._master, update)
        self._piece.live.copy_(self._master)

    def values(self) -> Iterator[torch.Tensor]:
        """The masters."""
        yield self._master
