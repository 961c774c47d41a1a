"""How far updates move the weights: from coefficients, checked against the noise itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eoh_esopt.experiments.update_size import (
    Coefficients,
    coefficients,
    cosine,
    noise_factors,
    noise_size,
    share_within,
    size,
)
from operators.momentum import momentum
from operators.noise import noise
from operators.records import Update
from operators.shaping import SHAPINGS

WEIGHTS = 40_000
REWARDS = st.lists(st.floats(-10, 10), min_size=3, max_size=12, unique=True).filter(lambda one: np.std(one) > 1e-3)


def update(rewards: list[float], *, step: int = 0, shaping: str = "z-score", alpha: float = 5e-4) -> Update:
    """An update by the method's own arithmetic, under seeds of its own."""
    weights = SHAPINGS[shaping](np.array(rewards), np.random.default_rng(0))
    seeds = tuple(range(100 * step, 100 * step + len(rewards)))
    return Update(step, seeds, tuple(rewards), tuple(weights.tolist()), alpha, 1e-3)


def replayed(moved: Coefficients) -> NDArray[np.float64]:
    """The change of each weight, by the definition of the noise."""
    changes = np.zeros(WEIGHTS)
    for seed, coefficient in moved.items():
        changes += coefficient * noise(seed, "a.weight", 0, WEIGHTS)
    return changes


def test_sizes_are_those_of_the_noise_itself() -> None:
    """Else the diagnosis speaks of other updates than those that were applied."""
    first, second = update([0.1, 0.5, 0.2, 0.9]), update([1.0, 3.0, 2.0, 2.5, 1.1], step=1)
    both = momentum(0.5)([first], second)
    one, other = replayed(coefficients([first])), replayed(coefficients([both]))
    assert size(coefficients([both])) == pytest.approx(float(np.sqrt(np.mean(other**2))), rel=0.02)
    assert np.linalg.norm(other) == pytest.approx(size(coefficients([both])) * math.sqrt(WEIGHTS), rel=0.02)
    limit = 0.8 * size(coefficients([both]))
    assert share_within(limit, size(coefficients([both]))) == pytest.approx(np.mean(np.abs(other) <= limit), abs=0.01)
    true = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
    found = cosine(coefficients([first]), coefficients([both]))
    assert found == pytest.approx(true, abs=4 / math.sqrt(WEIGHTS))
    assert found is not None
    assert found > 0.2, "momentum goes on in the same direction"


@given(REWARDS)
def test_an_update_is_as_large_whatever_it_rests_on(rewards: list[float]) -> None:
    """Else the size of an update is taken for a sign of learning."""
    found = update(rewards)
    assert size(coefficients([found])) == pytest.approx(5e-4 / math.sqrt(len(rewards)), rel=1e-4)
    factors = noise_factors([found], "z-score", antithetic=False)
    assert noise_size(coefficients([found]), factors) == pytest.approx(size(coefficients([found])), rel=1e-4)


@given(REWARDS, st.permutations(range(12)))
def test_dealing_out_rewards_at_random_changes_no_size(rewards: list[float], order: list[int]) -> None:
    """Else the control with shuffled rewards would look smaller than the run it is a control of."""
    shuffled = [rewards[place] for place in order if place < len(rewards)]
    sizes = [size(coefficients([update(one, shaping="centred-rank")])) for one in (rewards, shuffled)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-9)


def test_the_published_share_is_what_noise_gives() -> None:
    """Else 96 % of the changes within sigma is taken for a finding about learning."""
    rng = np.random.default_rng(0)
    updates = [update(rng.standard_normal(8).tolist(), step=step, alpha=2.5e-4) for step in range(70)]
    total = size(coefficients(updates))
    assert total == pytest.approx(2.5e-4 * math.sqrt(70 / 8), rel=1e-6)
    assert share_within(1.5e-3, total) == pytest.approx(0.957, abs=5e-4)
    assert share_within(2e-3, total) == pytest.approx(0.993, abs=5e-4)


def test_pairs_whose_sides_differ_stand_out_from_noise() -> None:
    """Else the one case in which the size does say something is averaged away: noise moves pairs less."""
    rewards = np.array([1.0, 0.9, 0.8, 0.0, 0.1, 0.2])  # of three directions, then of their mirrors
    weights = SHAPINGS["z-score"](rewards, np.random.default_rng(0))
    pairs = (weights[:3] - weights[3:]) / 2
    found = Update(0, (1, 2, 3), (0.5,) * 3, tuple(pairs.tolist()), 5e-4, 1e-3)
    moved = coefficients([found])
    noise_alone = noise_size(moved, noise_factors([found], "z-score", antithetic=True))
    assert noise_alone == pytest.approx(5e-4 / 3 * math.sqrt(3 / 2 * 6 / 5), rel=0.05)
    assert size(moved) > 1.2 * noise_alone


def test_updates_without_common_seeds_are_orthogonal() -> None:
    """Else chance is reported as a drift into one direction."""
    first, second = coefficients([update([1.0, 2.0, 4.0])]), coefficients([update([1.0, 2.0, 4.0], step=1)])
    assert cosine(first, second) == 0
    assert cosine(first, first) == pytest.approx(1)
    assert cosine(first, {seed: -one for seed, one in first.items()}) == pytest.approx(-1)
    assert cosine(first, {5: 0.0}) is None


def test_what_does_not_move_lies_within_any_limit() -> None:
    """Else an alpha of 0 ends the diagnosis in a division by zero."""
    still = coefficients([update([1.0, 2.0, 4.0], alpha=0.0)])
    assert (size(still), share_within(1e-3, size(still))) == (0, 1)
