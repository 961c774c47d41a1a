"""Centred ranks and rewards over tasks: what they are blind to, and what they still tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.shaping import centred_rank, over_tasks, z_score

RNG = np.random.default_rng
REWARDS = st.lists(st.integers(-50, 50), min_size=2, max_size=30)


def ranked(values: list[int] | list[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    return centred_rank(np.array(values, np.float64), RNG(0))


@given(REWARDS)
def test_ranks_are_counts_of_what_is_lower(values: list[int]) -> None:
    """Ties broken by position would reward a direction for standing later in its batch."""
    others = len(values) - 1
    for value, rank in zip(values, ranked(values), strict=True):
        below, equal = sum(one < value for one in values), values.count(value) - 1
        assert rank == pytest.approx((below + equal / 2) / others - 0.5, abs=1e-12)
    assert abs(ranked(values).sum()) < 1e-9


@given(values=REWARDS, factor=st.floats(0.01, 100), offset=st.floats(-100, 100))
def test_ranks_see_only_the_order(values: list[int], factor: float, offset: float) -> None:
    """Another unit or a curved scale of the same objective would teach something else."""
    rewards = np.array(values, np.float64)
    for other in (factor * rewards + offset, np.exp(rewards / 20), rewards**3):
        assert np.array_equal(ranked(other), ranked(rewards))


def test_an_outlier_counts_no_more_than_the_next() -> None:
    """One invalid candidate with a huge penalty would take all weight from the others' differences."""
    rewards = np.arange(10.0)
    spoiled = np.where(rewards == 0, -1e9, rewards)
    assert np.array_equal(ranked(spoiled), ranked(rewards))
    assert np.ptp(z_score(spoiled, RNG(0))[1:]) < 1e-7, "the z-scores of all but the outlier are the same"
    assert np.ptp(ranked(spoiled)[1:]) > 0.8


@pytest.mark.parametrize("count", [2, 10, 30])
def test_the_size_of_ranks_is_what_is_documented(count: int) -> None:
    """A user who raises alpha to match z-scores would get another step than meant."""
    weights = ranked(RNG(0).permutation(count).astype(np.float64))
    assert (weights.min(), weights.max()) == (-0.5, 0.5)
    assert weights.std() == pytest.approx(np.sqrt((count + 1) / (12 * (count - 1))))


TASKS = st.integers(2, 6)


@given(directions=st.integers(2, 12), tasks=TASKS, seed=st.integers(0, 999))
def test_difficulty_and_scale_of_a_task_do_not_count(directions: int, tasks: int, seed: int) -> None:
    """A task with wide rewards would drown the others, and a hard one punish whoever was given it."""
    rng = RNG(seed)
    rewards = rng.normal(size=(directions, tasks))
    scored = rng.random((directions, tasks)) < 0.7
    scored[:, 0] = True
    changed = rewards * rng.uniform(0.1, 50, tasks) + rng.normal(0, 100, tasks)
    assert over_tasks(changed, scored) == pytest.approx(over_tasks(rewards, scored), abs=1e-9)


def test_what_was_not_scored_is_not_looked_at() -> None:
    """A rollout that was lost would count as whatever happened to stand in its place."""
    rng = RNG(0)
    rewards, scored = rng.normal(size=(6, 4)), rng.random((6, 4)) < 0.6
    scored[:, 0] = True
    spoiled = np.where(scored, rewards, np.nan)
    assert np.array_equal(over_tasks(spoiled, scored), over_tasks(rewards, scored))
    assert np.isfinite(over_tasks(spoiled, scored)).all()


def test_one_task_with_all_scored_is_its_z_score() -> None:
    """A trainer with one task would learn at another rate than a search."""
    rewards = RNG(0).normal(size=12)
    assert over_tasks(rewards[:, None]) == pytest.approx(z_score(rewards, RNG(0)), rel=1e-6)


def test_a_task_that_tells_nothing_adds_nothing() -> None:
    """Rounding in a task that all solve would become full-sized weights."""
    rewards = RNG(0).normal(size=8)
    same = np.full(8, 0.1 + 0.2)
    once = np.full(8, np.nan)
    once[3] = 5.0
    table = np.column_stack((rewards, same, once))
    scored = ~np.isnan(table)
    expected = over_tasks(rewards[:, None]) / scored.sum(axis=1)
    assert over_tasks(table, scored) == pytest.approx(expected, rel=1e-12)


def correlation(difficulty: float, *, normalised: bool) -> NDArray[np.float64]:
    """Between a direction's ability and its reward over the tasks it was given, for 300 batches of 16 directions."""
    rng = RNG(5)
    found = []
    for _ in range(300):
        ability = rng.normal(size=16)
        rewards = ability[:, None] + rng.normal(0, difficulty, 12) + rng.normal(size=(16, 12))
        scored = rng.random((16, 12)) < 0.5
        scored[np.arange(16), rng.integers(12, size=16)] = True
        plain = np.where(scored, rewards, 0).sum(axis=1) / scored.sum(axis=1)
        found.append(np.corrcoef(ability, over_tasks(rewards, scored) if normalised else plain)[0, 1])
    return np.array(found)


def test_it_removes_the_difficulty_of_the_tasks_that_a_direction_happened_to_get() -> None:
    """Directions would be told apart by their tasks and not by what they are worth."""
    same = correlation(0.0, normalised=True)
    hard, plain = correlation(5.0, normalised=True), correlation(5.0, normalised=False)
    assert hard == pytest.approx(same, abs=1e-9), "the same abilities and noise, whatever the tasks"
    assert hard.mean() > 0.8
    assert plain.mean() < 0.7


def test_shapes_that_do_not_fit_are_refused() -> None:
    """A mask of another batch, or a direction without any reward, would give weights from nothing."""
    rewards = np.zeros((3, 2))
    with pytest.raises(ValueError, match="must both be"):
        over_tasks(rewards, np.ones((2, 2), bool))
    with pytest.raises(ValueError, match="must both be"):
        over_tasks(np.zeros(3))
    with pytest.raises(ValueError, match="Direction 1 was scored on no task"):
        over_tasks(rewards, np.array([[True, True], [False, False], [True, False]]))
