"""Shaping: z-scores in float64, no step from equal rewards, and a control that keeps only the sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.shaping import has_spread, shuffled, z_score

RNG = np.random.default_rng


@pytest.mark.parametrize("count", [2, 3, 10, 20, 30, 31])
@pytest.mark.parametrize("reward", [0.0, 0.1, 6.5417, -1e-3, 1e6 / 3])
def test_equal_rewards_have_no_spread(count: int, reward: float) -> None:
    """Rounding in the mean of equal rewards would become a full-sized random step."""
    assert not has_spread(np.full(count, reward))


@given(reward=st.floats(-1e6, 1e6), count=st.integers(2, 33))
def test_rewards_equal_up_to_rounding_have_no_spread(reward: float, count: int) -> None:
    """Two programs that differ in the last bit of a tour length would teach noise."""
    rewards = np.full(count, reward)
    rewards[0] = np.nextafter(reward, np.inf)
    assert not has_spread(rewards)


@pytest.mark.parametrize("rewards", [[0.0, 1e-6], [6.5417, 6.5418, 6.5417], [-1e6, -1e6 + 1]])
def test_small_real_differences_have_spread(rewards: list[float]) -> None:
    """Too wide a tolerance would skip the updates late in a search, when gains are small."""
    assert has_spread(np.array(rewards))


def test_scores_are_the_papers() -> None:
    """A sample deviation instead of the population's would change the step by G / (G - 1)."""
    rewards = np.array([10.0, 12.5, 13.0])
    scores = z_score(rewards, RNG(0))
    mean, deviation = 35.5 / 3, np.sqrt(((rewards - 35.5 / 3) ** 2).sum() / 3)
    assert scores.dtype == np.float64
    assert scores == pytest.approx((rewards - mean) / (deviation + 1e-8), rel=1e-14)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40))
def test_scores_sum_to_zero_and_keep_the_order(values: list[float]) -> None:
    """Weights with a mean would move the model along the directions' sum, whatever the rewards say."""
    rewards = np.array(values)
    scores = z_score(rewards, RNG(0))
    assert abs(scores.sum()) < 1e-3
    assert np.all(np.diff(scores[np.argsort(rewards)]) >= 0)
    if np.std(rewards) > 1e-3:
        assert scores.std() == pytest.approx(1, abs=1e-4)


def test_shuffled_is_a_permutation() -> None:
    """A control with other step sizes would not be compared on equal terms."""
    rewards = np.arange(10.0)
    dealt = [shuffled(z_score)(rewards, RNG(seed)) for seed in range(20)]
    for weights in dealt:
        assert sorted(weights) == sorted(z_score(rewards, RNG(0)))
    assert len({tuple(weights) for weights in dealt}) > 15
    assert np.array_equal(shuffled(z_score)(rewards, RNG(3)), dealt[3])


def test_shuffled_leaves_the_rewards_alone() -> None:
    """Rewards shuffled in place would be written wrongly to the history."""
    rewards = np.arange(6.0)
    kept: NDArray[np.float64] = rewards.copy()
    shuffled(z_score)(rewards, RNG(1))
    assert np.array_equal(rewards, kept)
