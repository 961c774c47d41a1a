"""Low-rank noise against numbers that were fixed once, and against its statistics."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.lowrank import LOWRANK_VERSION, factor_names, factors, lowrank_noise, rank_scale
from operators.noise import noise

NAME = "model.layers.3.mlp.up_proj.weight"


def by_hand(left: NDArray[np.float32], right: NDArray[np.float32], rank: int) -> np.float32:
    """One element from its two rows of factors, each operation written out."""
    total = np.float32(np.float64(left[0]) * np.float64(right[0]))  # exact in float64, so it is rounded once
    for k in range(1, rank):
        product = np.float32(np.float64(left[k]) * np.float64(right[k]))
        total = np.float32(np.float64(total) + np.float64(product))
    return np.float32(np.float64(total) * np.float64(np.float32(rank**-0.5)))


@pytest.mark.parametrize(
    ("rank", "digest"),
    [
        (1, "5097d928cc639098b1efbf6b21b264e4cc4a84326d8a08c09b4198bf4a49a8ab"),
        (3, "6a2044fc84f410c692766b09395ab1b204a2c40e9d571cf6e3bc675fa3d1116f"),
    ],
)
def test_noise_is_the_golden_one(rank: int, digest: str) -> None:
    """A change of names, order or rounding would replay old histories to other weights."""
    values = lowrank_noise(2024, NAME, (37, 29), rank).astype("<f4")
    assert hashlib.sha256(values.tobytes()).hexdigest() == digest
    assert LOWRANK_VERSION == 1


def test_factors_are_noise_under_names_of_their_own() -> None:
    """Equal factors would make the noise symmetric, and the full noise's name would tie the two kinds together."""
    left, right = factors(7, NAME, (5, 3), 2)
    assert np.array_equal(left.reshape(-1), noise(7, f"{NAME}/A", 0, 10))
    assert np.array_equal(right.reshape(-1), noise(7, f"{NAME}/B", 0, 6))
    assert factor_names(NAME) == (f"{NAME}/A", f"{NAME}/B")


@given(seed=st.integers(0, 2**64 - 1), rank=st.integers(1, 9), rows=st.integers(1, 9), columns=st.integers(1, 9))
def test_every_operation_is_rounded_by_itself_in_its_order(seed: int, rank: int, rows: int, columns: int) -> None:
    """Fused or reordered sums would give other bits on other devices."""
    left, right = factors(seed, NAME, (rows, columns), rank)
    found = lowrank_noise(seed, NAME, (rows, columns), rank)
    expected = [[by_hand(a, b, rank) for b in right] for a in left]
    assert np.array_equal(found, np.array(expected, np.float32))


def test_one_product_is_not_scaled() -> None:
    """Rank 1, the default, must not depend on a root."""
    left, right = factors(1, NAME, (4, 6), 1)
    assert rank_scale(1) == 1
    assert np.array_equal(lowrank_noise(1, NAME, (4, 6), 1), left * right.T)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_moments_are_those_of_unit_noise(rank: int) -> None:
    """Noise of another size would make sigma mean something else (bounds: five standard errors over directions)."""
    shape, directions = (40, 50), 2000
    eps = np.stack([lowrank_noise(seed, NAME, shape, rank) for seed in range(directions)]).astype(np.float64)
    by_direction = eps.reshape(directions, -1)
    for values, expected in ((by_direction.mean(axis=1), 0.0), ((by_direction**2).mean(axis=1), 1.0)):
        assert abs(values.mean() - expected) < 5 * values.std() / directions**0.5
    kurtosis = (by_direction**4).mean(axis=1)
    assert abs(kurtosis.mean() - (3 + 6 / rank)) < 5 * kurtosis.std() / directions**0.5


def test_elements_are_not_correlated() -> None:
    """A direction's reward would credit one weight for another: the estimate of the gradient rests on this."""
    directions = 20_000
    eps = np.stack([lowrank_noise(seed, NAME, (3, 4), 1).reshape(-1) for seed in range(directions)])
    assert np.abs(np.corrcoef(eps.T) - np.eye(12)).max() < 5 * (3 / directions) ** 0.5


@pytest.mark.parametrize("rank", [1, 3])
def test_rank_is_what_it_says(rank: int) -> None:
    """Noise of full rank could not be had by thin products."""
    values = np.linalg.svd(lowrank_noise(5, NAME, (30, 20), rank).astype(np.float64), compute_uv=False)
    assert values[rank - 1] > 1
    assert values[rank:].max() < 1e-5
