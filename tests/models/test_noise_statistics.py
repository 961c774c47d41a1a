"""The noise as the kernels make it, at 10**8 draws: moments, and correlations between all that could be related.

Seeds are fixed, so nothing here is left to chance. Limits are five standard errors of independent normals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from eoh_esopt.models import kernels
from eoh_esopt.models.spans import Span
from operators.noise import normal_table, stream_key

DRAWS = 10**8
CHUNK = 1 << 20
ERRORS = 5.0
TABLE = normal_table()
SEED, NAME = 17, "model.layers.0.mlp.up_proj.weight"
KEY = stream_key(SEED, NAME)
LAGS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 4096, 8 * 2**20)


def draws(key: int, first: int = 0) -> Iterator[NDArray[np.float32]]:
    """DRAWS elements of a stream in chunks, overwritten by the next."""
    out = np.empty(CHUNK, np.float32)
    for start in range(0, DRAWS, CHUNK):
        count = min(CHUNK, DRAWS - start)
        kernels.fill_noise(out[:count], np.uint64(key), *Span(first + start, CHUNK, CHUNK).arguments, TABLE)
        yield out[:count]


def correlations(key: int, other: int, first: int = 0) -> tuple[float, float]:
    """Of the values and of their squares, between a stream and another one that begins at element `first`."""
    values = squares = 0.0
    for one, two in zip(draws(key), draws(other, first), strict=True):
        values += float(np.dot(one, two))
        np.square(one, out=one)
        np.square(two, out=two)
        squares += float(np.dot(one - np.float32(1), two - np.float32(1)))
    return values / DRAWS, squares / DRAWS / 2.0


def assert_unrelated(key: int, other: int, first: int = 0) -> None:
    assert np.abs(correlations(key, other, first)).max() < ERRORS / DRAWS**0.5


def test_moments_are_the_normals() -> None:
    """A bias would move all weights one way; another variance would be another sigma than the user's."""
    sums = np.zeros(4)
    for chunk in draws(KEY):
        squares = np.square(chunk)
        sums += [chunk.sum(dtype=float), squares.sum(dtype=float), np.dot(squares, chunk), np.dot(squares, squares)]
    mean, variance, third, fourth = sums / DRAWS
    moments = [float(np.mean(TABLE.astype(float) ** power)) for power in (1, 2, 3, 4, 6, 8)]
    error = ERRORS / DRAWS**0.5
    assert abs(mean) < error
    assert abs(variance - 1.0) < error * (moments[3] - 1.0) ** 0.5
    assert abs(third) < error * moments[4] ** 0.5
    assert abs(fourth - moments[3]) < error * (moments[5] - moments[3] ** 2) ** 0.5
    assert abs(fourth / variance**2 - 3.0) < 0.01  # the normal's, which the table's tails miss by 0.0008


def test_all_quantiles_are_as_frequent() -> None:
    """Numbers that come up too often would be steps that directions prefer."""
    counts = np.zeros(TABLE.size)
    for chunk, _ in zip(draws(KEY), range(8), strict=False):
        counts += np.bincount(np.searchsorted(TABLE, chunk), minlength=TABLE.size)
    expected = counts.sum() / TABLE.size
    freedom = TABLE.size - 1
    assert abs(float(np.sum((counts - expected) ** 2)) / expected - freedom) < ERRORS * (2 * freedom) ** 0.5


@pytest.mark.parametrize("lag", LAGS)
def test_neighbours_are_unrelated(lag: int) -> None:
    """Elements of a block, or of blocks whose counters differ by little, would move together."""
    assert_unrelated(KEY, KEY, lag)


@pytest.mark.parametrize("seed", [SEED + 1, SEED ^ 2**31, SEED + 2**32])
def test_seeds_are_unrelated(seed: int) -> None:
    """Directions that share noise would explore less than their number."""
    assert_unrelated(KEY, stream_key(seed, NAME))


@pytest.mark.parametrize("name", ["model.layers.1.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight"])
def test_tensors_are_unrelated(name: str) -> None:
    """Layers of equal shape would get the same noise, as in programs that seed every tensor alike."""
    assert_unrelated(KEY, stream_key(SEED, name))


@pytest.mark.parametrize("bit", [0, 31, 32, 63])
def test_keys_of_one_bit_apart_are_unrelated(bit: int) -> None:
    """The generator itself must part them: a hash may give any two keys to two tensors."""
    assert_unrelated(KEY, KEY ^ 1 << bit)
