"""Weights in parts: every element once, in order, with the noise of its place."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.models.digest import digest
from eoh_esopt.models.lowrank import LowRankPiece
from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.spans import Span


def places(span: Span, size: int) -> list[int]:
    """Indices of a piece's elements in the checkpoint's tensor, by the definition of a span."""
    return [span.first + j // span.run * span.stride + j % span.run for j in range(size)]


@given(
    first=st.integers(0, 50),
    run=st.integers(1, 40),
    gap=st.integers(0, 10),
    size=st.integers(0, 200),
    limit=st.integers(1, 70),
)
def test_parts_of_a_span_are_the_span(first: int, run: int, gap: int, size: int, limit: int) -> None:
    """A part that begins at the wrong place would move its weights by the noise of others."""
    span = Span(first, run, run + gap)
    parts = list(span.parts(size, limit))
    assert [start for start, _, _ in parts] == np.cumsum([0, *(count for _, count, _ in parts)]).tolist()[:-1]
    assert all(0 < count <= limit for _, count, _ in parts)
    assert [place for _, count, part in parts for place in places(part, count)] == places(span, size)


MATRIX = (7, 24)
PIECES = {
    "a tensor": (Span.whole(168), 168, None),
    "some columns": (Span(8, 10, 24), 70, None),
    "a low-rank matrix": (Span.whole(168), 168, 2),
    "some rows of a low-rank matrix": (Span(48, 96, 96), 96, 1),
    "some columns of a low-rank matrix": (Span(8, 10, 24), 70, 3),
}


@pytest.mark.parametrize("limit", [1, 8, 16, 50, 1000])
@pytest.mark.parametrize(("span", "size", "rank"), PIECES.values(), ids=PIECES)
def test_parts_of_a_piece_have_its_noise(span: Span, size: int, rank: int | None, limit: int) -> None:
    """Modes that work chunk by chunk would move the weights by other noise than those that do not."""
    lowrank = None if rank is None else LowRankPiece.of("w", span, size, MATRIX[1], rank)
    piece = Piece("w", torch.arange(float(size)), span, lowrank=lowrank)
    whole = arithmetic.noise(piece, 5, torch.empty(size))
    assert whole.abs().max() > 0
    joined = torch.empty(0)
    for where, part in piece.parts(limit):
        assert torch.equal(part.live, piece.live[where])
        found = arithmetic.noise(part, 5, torch.empty(part.live.numel()))
        assert torch.equal(found, whole[where])
        joined = torch.cat([joined, part.live])
    assert torch.equal(joined, piece.live)


@settings(deadline=None)
@given(size=st.integers(1, 60), limit=st.integers(1, 60))
def test_a_checksum_does_not_tell_how_weights_were_cut(size: int, limit: int) -> None:
    """Else the same weights would have another checksum in each mode, and none could replay another's history."""
    values = torch.arange(size, dtype=torch.float32)
    plain = hashlib.sha256(f"w ({size},) torch.float32\n".encode() + values.numpy().tobytes()).hexdigest()
    assert digest([("w", (size,), values)]) == plain
    assert digest([("w", (size,), values.split(limit))]) == plain
