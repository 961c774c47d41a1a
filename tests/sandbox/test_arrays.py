"""Decisions as bytes: what was packed comes back, and bytes of a forger never become anything else than arrays."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from eoh_esopt.sandbox.arrays import pack, unpack
from problems.base import Decisions, WrongShape, as_decisions

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
decisions = st.lists(hnp.arrays(st.sampled_from(["<i8", "<f8"]), shapes), max_size=4)


def head(kind: int, *shape: int) -> bytes:
    return struct.pack(f"<BB{len(shape)}Q", kind, len(shape), *shape)


def joined(arrays: list[Decisions]) -> bytes:
    return b"".join(pack(arrays))


@given(decisions)
def test_arrays_come_back(arrays: list[Decisions]) -> None:
    """The score would be that of other decisions than the candidate's."""
    found = unpack(joined(arrays), len(arrays))
    for one, other in zip(found, arrays, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize(
    "value",
    [
        np.arange(12).reshape(3, 4).T,
        np.arange(12)[::-3],
        np.arange(3, dtype=">i4"),
        np.array([1.5, -0.0, np.inf, np.nan], dtype=">f8"),
        np.float16([0.5]),
        True,
        3,
        [],
    ],
)
def test_whatever_solve_returns_comes_back(value: object) -> None:
    """Views and arrays of other byte order would come out garbled."""
    sent = as_decisions(value, "own")  # type: ignore[arg-type]
    [found] = unpack(joined([sent]), 1)
    assert found.shape == np.shape(value)
    assert np.array_equal(found, np.asarray(value), equal_nan=True)


def test_the_score_may_work_on_what_it_gets() -> None:
    """A user's score that sorts its decisions in place would refuse every candidate."""
    [found] = unpack(joined([np.array([3, 1, 2])]), 1)
    found.sort()
    assert found.tolist() == [1, 2, 3]
    assert found.flags.aligned


def refused_or_exact(data: bytes, count: int) -> None:
    """The two things that may become of bytes."""
    try:
        found = unpack(data, count)
    except WrongShape:
        return
    assert len(found) == count
    assert joined(found) == data


@given(st.binary(max_size=120), st.integers(0, 3))
def test_any_bytes_are_refused_or_exactly_arrays(data: bytes, count: int) -> None:
    """Bytes written by a hostile candidate would end the search with a traceback, or be read in two ways."""
    refused_or_exact(data, count)


@given(decisions.filter(bool), st.data())
def test_damaged_arrays_are_refused_or_exactly_arrays(arrays: list[Decisions], data: st.DataObject) -> None:
    """As for any bytes, with heads that make sense."""
    sent = bytearray(joined(arrays))
    for place in data.draw(st.lists(st.integers(0, len(sent) - 1), max_size=4)):
        sent[place] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    refused_or_exact(bytes(sent), len(arrays))


@given(
    st.lists(st.sampled_from([0, 1, 2, 2**31, 2**32, 2**61, 2**62, 2**63, 2**64 - 1]), max_size=4), st.integers(0, 3)
)
def test_huge_dimensions(shape: list[int], numbers: int) -> None:
    """A product of dimensions that overflows would pass for a small one, or memory would be asked for."""
    try:
        [found] = unpack(head(0, *shape) + bytes(8 * numbers), 1)
    except WrongShape:
        return
    assert list(found.shape) == shape
    assert found.size == numbers


def test_a_head_alone_takes_no_memory() -> None:
    """A hostile candidate could use up the parent's memory with 30 bytes."""
    tracemalloc.start()
    with pytest.raises(WrongShape, match="in 0 bytes"):
        unpack(head(1, 2**40, 2**10), 1)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "count", "message"),
    [
        (b"", 1, "decisions for 0 of 1 instances"),
        (head(0, 1)[:-1], 1, "0 of 1"),
        (head(0, 1) + bytes(8), 2, "1 of 2"),
        (head(0, 1) + bytes(7), 1, r"shape \(1,\) in 7 bytes"),
        (head(0, 1) + bytes(9), 1, "1 bytes follow the decisions for 1 instances"),
        (head(0, 1) + bytes(8), 0, "18 bytes follow"),
        (head(2, 1) + bytes(8), 1, "unknown type 2"),
        (head(0, 1, 1, 1, 1, 1) + bytes(8), 1, "5 dimensions"),
        (b"\xff\xff", 1, "255"),
    ],
)
def test_what_is_wrong_is_told(data: bytes, count: int, message: str) -> None:
    """The user would not see what a candidate sent."""
    with pytest.raises(WrongShape, match=message):
        unpack(data, count)


def test_five_dimensions_are_too_many() -> None:
    """A driver would send what the parent cannot read."""
    with pytest.raises(WrongShape, match="5 dimensions, at most 4"):
        pack([np.zeros((1, 1, 1, 1, 1))])
