"""Restore mode `residual`: bfloat16 live weights and 16 bits beside each hold the exact float32 state.

At rest the live weight is the true one rounded to bfloat16, and the low half of the true one's bits is kept. The high
half follows: of the numbers with this low half, the true one is nearest to the live weight. Only where it lies half way
between two bfloat16 numbers (one in 65,536) are there two that are as near.

Under a direction the live weight is cast(true + sigma * eps). The noise can be drawn again, and of the numbers with
this low half the true one is mostly nearest to live - sigma * eps; not so where the noise moved a weight to a number of
coarser rounding than its own.

Wherever the nearest number is not the true one, its high half is kept with its place: found by comparison when the live
weight is written, so what comes back is exact for every sigma, not merely probable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.precision.residual_bits import Bits, TorchBits
from eoh_esopt.models.precision.residual_kernels import KernelBits
from operators.errors import UserError
from operators.records import Direction, Update


@dataclass(frozen=True)
class Exceptions:
    """High halves of the weights of a chunk that are not the nearest numbers.

    Attributes:
        places: their indices in the chunk, int32; None where the high halves of all weights are kept, because a list
            would take more memory.
        high: the high halves, int16.
    """

    places: torch.Tensor | None
    high: torch.Tensor

    @classmethod
    def found(cls, wrong: torch.Tensor, bits: torch.Tensor) -> Exceptions:
        """The exceptions among `bits`, shape (n,), int32, where `wrong`, shape (n,), bool, holds."""
        places = _places(wrong)
        if places.nbytes + 2 * places.numel() > 2 * bits.numel():
            return cls(None, (bits >> 16).to(torch.int16))
        return cls(places, (bits[places] >> 16).to(torch.int16))

    @property
    def nbytes(self) -> int:
        """Their memory."""
        return self.high.nbytes + (0 if self.places is None else self.places.nbytes)

    def put_into(self, bits: torch.Tensor) -> None:
        """Correct the bits of nearest numbers, shape (n,), int32, whose low halves are right already."""
        where = slice(None) if self.places is None else self.places
        bits[where] = (self.high.to(torch.int32) << 16) | (bits[where] & 0xFFFF)


@dataclass(frozen=True)
class Record:
    """What a chunk needs beside live weights and low halves.

    Attributes:
        at_rest: exceptions while no direction is active.
        moved: exceptions under the active direction; None where the live weights are the true ones.
    """

    at_rest: Exceptions
    moved: Exceptions | None = None


class Journal:
    """One write at a time. A write that an interrupt broke off is done again before anything else happens.

    Between the live weights and what is recorded of them there must be no gap: a chunk that counts as moved and is not,
    or the other way round, could not be joined again.
    """

    def __init__(self) -> None:
        self._pending: Callable[[], None] | None = None

    def write(self, action: Callable[[], None]) -> None:
        """Do what has the same effect done once or twice."""
        self._pending = action
        self.finish()

    def finish(self) -> None:
        """Do again what may have been broken off."""
        if self._pending is not None:
            self._pending()
            self._pending = None


class ResidualWeights:
    """True weights as live ones and 16 more bits each, of bfloat16 models: 2 bytes a weight and the exceptions.

    Args:
        piece: n bfloat16 weights; they are the true ones to begin with.
        bits: the arithmetic on chunks, on the piece's device.
        journal: shared by all pieces that share `bits`.
    """

    host_bytes = 0

    def __init__(self, piece: Piece, bits: Bits, journal: Journal) -> None:
        self._bits = bits
        self._journal = journal
        self._parts = list(piece.parts(bits.limit))
        self._low = torch.zeros(piece.live.numel(), dtype=torch.int16, device=piece.live.device)
        none = torch.empty(0, dtype=torch.int32, device=piece.live.device)
        self._records = [Record(Exceptions(none, none.to(torch.int16)))] * len(self._parts)

    @property
    def device_bytes(self) -> int:
        """Low halves and exceptions, those of the active direction included."""
        kept = (one for record in self._records for one in (record.at_rest, record.moved) if one is not None)
        return self._low.nbytes + sum(one.nbytes for one in kept)

    def perturb(self, direction: Direction) -> None:
        """Join, move, and note what could not be joined again."""
        self._journal.finish()
        for number, (where, part) in enumerate(self._parts):
            bits = self._joined(number)
            live, wrong = self._bits.moved(bits, part, self._low[where], direction)
            self._write(number, live, replace(self._records[number], moved=Exceptions.found(wrong, bits)))

    def restore(self, direction: Direction) -> None:
        """Draw the noise again, join, round."""
        self._journal.finish()
        for number, (where, part) in enumerate(self._parts):
            moved = self._records[number].moved
            if moved is not None:
                bits = self._bits.nearest(part, self._low[where], direction)
                moved.put_into(bits)
                live, _, _ = self._bits.split(bits)
                self._write(number, live, replace(self._records[number], moved=None))

    def update(self, update: Update) -> None:
        """Join, move in float32, split."""
        self._journal.finish()
        for number, (_, part) in enumerate(self._parts):
            bits = self._joined(number)
            arithmetic.add_update(part, bits.view(torch.float32), update)
            live, low, wrong = self._bits.split(bits)
            self._write(number, live, Record(Exceptions.found(wrong, bits)), low)

    def values(self) -> Iterator[torch.Tensor]:
        """Joined chunks."""
        self._journal.finish()
        for number in range(len(self._parts)):
            yield self._joined(number).view(torch.float32)

    def _joined(self, number: int) -> torch.Tensor:
        """The bits of a chunk's true weights at rest."""
        where, part = self._parts[number]
        bits = self._bits.nearest(part, self._low[where], None)
        self._records[number].at_rest.put_into(bits)
        return bits

    def _write(self, number: int, live: torch.Tensor, record: Record, low: torch.Tensor | None = None) -> None:
        where, part = self._parts[number]

        def write() -> None:
            self._bits.store(part.live, live)
            if low is not None:
                self._bits.store(self._low[where], low)
            self._records[number] = record

        self._journal.write(write)


def residual_weights(pieces: Sequence[Piece]) -> list[ResidualWeights]:
    """The true weights of the pieces of one model.

    Raises:
        UserError: a piece is not bfloat16.
    """
    for piece in pieces:
        if piece.live.dtype != torch.bfloat16:
            dtype = str(piece.live.dtype).removeprefix("torch.")
            raise UserError(
                f"Restore mode 'residual' keeps 16 bits beside bfloat16 weights, and {piece.name} is {dtype}. Use "
                "--dtype bfloat16, or --restore exact."
            )
    widest = max((len(piece.lowrank.columns) for piece in pieces if piece.lowrank is not None), default=0)
    kernels, journal = KernelBits(max(widest, KernelBits.limit)), Journal()
    return [
        ResidualWeights(piece, kernels if piece.live.device.type == "cpu" else TorchBits(), journal) for piece in pieces
    ]


def _places(wrong: torch.Tensor) -> torch.Tensor:
    if wrong.device.type == "cpu":  # torch's own takes many times as long
        return torch.from_numpy(np.flatnonzero(wrong.numpy()).astype(np.int32))
    return wrong.nonzero().view(-1).to(torch.int32)
