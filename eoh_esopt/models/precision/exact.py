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
    """

    host_bytes = 0

    def __init__(self, piece: Piece, master: torch.Tensor) -> None:
        self._piece = piece
        self._master = master

    @property
    def device_bytes(self) -> int:
        """The masters."""
        return self._master.nbytes

    def perturb(self, direction: Direction) -> None:
        """One pass: read the masters, or the live weights where they are equal, and write the live weights."""
        live = self._piece.live
        source = live if live.dtype == self._master.dtype else self._master  # in place takes a third less traffic
        arithmetic.perturb(self._piece, source, direction.seed, direction.sigma)

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
