"""One piece of the weights in scope: its live memory, and what defines the noise that moves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from eoh_esopt.models.lowrank import LowRankPiece
from eoh_esopt.models.spans import Span


@dataclass(frozen=True)
class Piece:
    """Weights that lie next to each other in memory, a tensor of the checkpoint or a part of one.

    Attributes:
        name: canonical checkpoint name of the tensor; the noise is keyed by it.
        live: the memory that the model computes with, flat.
        span: where the piece lies in the checkpoint's tensor.
        offset: added to the weight to get the gain that multiplicative noise scales.
        multiplicative: noise scales the weights instead of being added to them.
        lowrank: where its noise is of low rank, what it is made of.
    """

    name: str
    live: torch.Tensor
    span: Span
    offset: float = 0.0
    multiplicative: bool = False
    lowrank: LowRankPiece | None = None

    def parts(self, limit: int) -> Iterator[tuple[slice, Piece]]:
        """Consecutive parts, and where they lie in the piece.

        A part has at most `limit` elements; where noise is of low rank it is whole rows, so at least one.
        """
        unit = 1 if self.lowrank is None else len(self.lowrank.columns)
        for start, count, span in self.span.parts(self.live.numel(), max(limit // unit, 1) * unit):
            lowrank = self.lowrank
            if lowrank is not None:
                lowrank = replace(lowrank, rows=lowrank.rows[start // unit : (start + count) // unit])
            where = slice(start, start + count)
            yield where, replace(self, live=self.live[where], span=span, lowrank=lowrank)
