"""The noise against numbers that were fixed once: a history written anywhere must replay everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.noise import NOISE_VERSION, noise, normal_table, philox, stream_key, uniform

NAMES = ("model.embed_tokens.weight", "model.layers.3.self_attn.q_proj.weight")
SEEDS = (0, 2**64 - 1)
DRAWS = 10_000_000


@pytest.fixture(scope="module")
def draws() -> NDArray[np.float32]:
    return noise(2024, NAMES[0], 0, DRAWS)


def correlation(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def plain_philox(key: int, counter: int) -> list[int]:
    """Philox4x32-10 in Python's own integers, written from the paper."""
    keys = [key & 0xFFFFFFFF, key >> 32]
    words = [(counter >> shift) & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        low = 0xFFFFFFFF
        words = [(second >> 32) ^ words[1] ^ keys[0], second & low, (first >> 32) ^ words[3] ^ keys[1], first & low]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return words


def test_generator_gives_the_published_known_answer() -> None:
    """Another generator under the name of Philox would fit no other implementation of the definition."""
    assert philox(0, np.zeros(1, np.uint64)).tolist() == [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]]


@given(key=st.integers(0, 2**64 - 1), block=st.integers(0, 2**64 - 1))
def test_generator_equals_plain_integers(key: int, block: int) -> None:
    """A wrong carry in the vectorised rounds would show only for some keys and counters."""
    assert philox(key, np.array([block], np.uint64))[0].tolist() == plain_philox(key, block)


def test_table_is_the_definitions() -> None:
    """One other entry of the table would give other weights from the same history."""
    table = normal_table()
    digest = hashlib.sha256(table.astype("<f4").tobytes()).hexdigest()
    assert digest == "e8cfff23047b7e58f6ae180f798c0bd13cfa7a46c5e6db798596865662071226"
    assert NOISE_VERSION == 1
    assert np.array_equal(table, -table[::-1])
    assert np.array_equal(table * np.float32(2**20), np.rint(table * np.float32(2**20)))


def test_table_cannot_be_written() -> None:
    """A caller that scales the table in place would change every direction after it."""
    with pytest.raises(ValueError, match="read-only"):
        normal_table()[0] = 0.0


@pytest.mark.parametrize(
    ("seed", "name", "key", "multiples"),
    [
        (
            SEEDS[0],
            NAMES[0],
            0xBEEC43211DF2782E,
            [364029, 833064, 194279, 1805147, 1520372, 225254, -1986848, 2296044],
        ),
        (
            SEEDS[1],
            NAMES[1],
            0x5F92D8AD76D01659,
            [-1164193, -1020408, 813576, -179446, -440101, -82806, -1299972, 436644],
        ),
    ],
)
def test_first_normals_are_the_golden_ones(seed: int, name: str, key: int, multiples: list[int]) -> None:
    """A change of the key, the word order or the half order would replay old histories to other weights."""
    assert stream_key(seed, name) == key
    assert (noise(seed, name, 0, 8) * np.float32(2**20)).tolist() == multiples


def test_long_stream_has_the_golden_digest() -> None:
    """A slip that spares the first block would be seen by no short vector."""
    values = noise(2024, "model.norm.weight", 0, 100_000).astype("<f4")
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    assert digest == "28518ebd47a0d4d2bdd9e53c5d8d8dbbe925b88194d7be352f495fb1f0f80156"


@given(start=st.integers(0, 5000), count=st.integers(0, 5000))
def test_any_piece_is_a_slice_of_the_whole(start: int, count: int) -> None:
    """Noise that depends on chunking would differ between shards, devices and chunk sizes."""
    assert np.array_equal(noise(3, "w", start, count), noise(3, "w", 0, 10_000)[start : start + count])
    assert np.array_equal(uniform(3, "w", start, count), uniform(3, "w", 0, 10_000)[start : start + count])


@pytest.mark.parametrize("element", [2**32 - 3, 2**32 + 5, 2**35 - 4, 2**35 + 3, 2**45 + 7])
def test_elements_beyond_32_bits_are_their_own(element: int) -> None:
    """A counter cut to 32 bits would repeat the noise inside the largest tensors."""
    first = element // 8
    numbers = [
        (word >> shift) & 0xFFFF
        for block in range(first, first + 3)
        for word in plain_philox(stream_key(5, "big"), block)
        for shift in (0, 16)
    ]
    expected = normal_table()[numbers[element % 8 : element % 8 + 16]]
    assert np.array_equal(noise(5, "big", element, 16), expected)
    for bits in (32, 35):
        if element >= 2**bits:
            assert not np.array_equal(noise(5, "big", element % 2**bits, 16), expected)


def test_moments_are_normal(draws: NDArray[np.float32]) -> None:
    """Noise of another size or shape would make sigma mean something else (bounds: five standard errors)."""
    values = draws.astype(np.float64)
    assert abs(values.mean()) < 5 * DRAWS**-0.5
    assert abs(values.var() - 1) < 5 * (2 / DRAWS) ** 0.5
    assert abs((values**3).mean()) < 5 * (15 / DRAWS) ** 0.5
    assert abs((values**4).mean() / values.var() ** 2 - 3) < 5 * (24 / DRAWS) ** 0.5
    assert 4 < np.abs(values).max() < 4.4


def test_neighbours_are_not_correlated(draws: NDArray[np.float32]) -> None:
    """Elements of one block come from one call of the generator: a shared bit would tie neighbouring weights."""
    for lag in range(1, 10):
        assert abs(correlation(draws[: 1_000_000 - lag], draws[lag:1_000_000])) < 5e-3
    blocks = draws[:800_000].reshape(-1, 8)
    assert np.abs(np.corrcoef(blocks.T) - np.eye(8)).max() < 5 * 100_000**-0.5


def streams() -> Iterator[tuple[int, str]]:
    for seed in (0, 1, 2, 2**32, 2**32 + 1, 2**63, 2**64 - 1):
        for name in (*NAMES, "model.layers.13.self_attn.q_proj.weight", "w", ""):
            yield seed, name


def test_tensors_and_seeds_are_not_correlated() -> None:
    """Equal noise in two layers, or under seeds that agree in their low bits, would halve what a direction explores."""
    count = 50_000
    rows = np.stack([noise(seed, name, 0, count) for seed, name in streams()])
    assert np.abs(np.corrcoef(rows) - np.eye(len(rows))).max() < 5 * count**-0.5


@pytest.mark.parametrize("seed", [-1, 2**64, 2**80])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    """A seed cut to 64 bits would name another direction than the history says."""
    with pytest.raises(ValueError, match="64"):
        noise(seed, "w", 0, 1)
    with pytest.raises(ValueError, match="64"):
        uniform(seed, "w", 0, 1)


def test_uniform_numbers_fill_the_unit_interval() -> None:
    """Numbers that reach 1 or lean to one side would draw tokens that the model does not give."""
    count = 1_000_000
    values = uniform(11, "sampling", 0, count)
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 1 / 2) < 5 * (1 / 12 / count) ** 0.5
    assert abs(values.var() - 1 / 12) < 5 * (1 / 180 / count) ** 0.5
    shares = np.bincount((values * 100).astype(int), minlength=100) / count
    assert np.abs(shares - 0.01).max() < 5 * (0.01 / count) ** 0.5
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 * count**-0.5


def test_uniform_numbers_are_the_golden_ones() -> None:
    """Another cut of the words would give other replies for the same seed."""
    first = plain_philox(stream_key(7, "sampling"), 0)
    assert uniform(7, "sampling", 0, 2).tolist() == [
        (first[0] + (first[1] << 32) >> 11) / 2**53,
        (first[2] + (first[3] << 32) >> 11) / 2**53,
    ]
    assert uniform(7, "sampling", 0, 2).tolist() == [0.31650197004678415, 0.32501295840062383]
