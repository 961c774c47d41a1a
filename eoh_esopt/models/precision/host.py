"""Restore mode `host`: float32 masters in the host's memory, streamed to the live weights' device chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.precision.streaming import cast_into, uploaded
from operators.records import Direction, Update

LIMIT = 1 << 22
"""Elements of a chunk: two of them, 32 MiB, are all that the mode holds on the device."""


class HostWeights:
    """True weights in float32 in the host's memory: 4 bytes a weight there, none on the device.

    A perturbation streams 4 bytes a weight to the device, a restore only the cast. An update streams 4 bytes to the
    device and back: it regenerates the noise of every direction, which the device does in a fraction of the CPU's time,
    where the journey back costs as much as a perturbation. Without another device than the CPU nothing is streamed,
    and the mode equals `exact`.

    Args:
        piece: n weights.
        master: shape (n,), float32, in the host's memory: the true weights.
    """

    device_bytes = 0

    def __init__(self, piece: Piece, master: torch.Tensor) -> None:
        self._device = piece.live.device
        self._master = master
        self._parts = [part for _, part in piece.parts(LIMIT)]
        self._chunks = [master[where] for where, _ in piece.parts(LIMIT)]

    @property
    def host_bytes(self) -> int:
        """The masters."""
        return self._master.nbytes

    def perturb(self, direction: Direction) -> None:
        """Stream the masters, add the noise on the device."""
        for part, values in zip(self._parts, uploaded(self._chunks, self._device), strict=True):
            arithmetic.perturb(part, values, direction.seed, direction.sigma)

    def restore(self, direction: Direction) -> None:
        """Stream the masters' cast."""
        cast_into([part.live for part in self._parts], self._chunks)

    def update(self, update: Update) -> None:
        """Stream the masters, move them on the device, stream them back."""
        streamed = zip(self._parts, self._chunks, uploaded(self._chunks, self._device), strict=True)
        for part, chunk, values in streamed:
            arithmetic.add_update(part, values, update)
            part.live.copy_(values)
            chunk.copy_(values, non_blocking=True)
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()  # the masters are read on the host from here on

    def values(self) -> Iterator[torch.Tensor]:
        """The masters, in the host's memory."""
        yield self._master
