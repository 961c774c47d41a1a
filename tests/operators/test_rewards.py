"""Rewards: the paper's to the letter, and what must hold for every one of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import trial

from operators.records import Status
from operators.rewards import LEVELS, Reward, Trial, graded, level, ordered, paper, sample

ALL: list[Reward] = [paper, ordered, sample, graded]
RELATIVE: list[Reward] = [paper, ordered, sample]
FAILED = [status for status in Status if status is not Status.OK]


def values(reward: Reward, trials: list[Trial]) -> list[float]:
    """The batch's rewards, where all of them count."""
    rewards = reward(trials)
    assert not rewards.no_signal
    found = [value for value in rewards.values if value is not None]
    assert len(found) == len(trials)
    return found


def test_paper_reward_is_the_parents_objective_minus_the_childs() -> None:
    """A reward with the sign turned would teach the model to write worse programs."""
    assert values(paper, [trial(9.0), trial(12.0), trial(20.0)]) == [1.0, -2.0, -10.0]


def test_paper_reward_takes_the_best_parent() -> None:
    """A child of two parents must beat the better one to gain."""
    assert values(paper, [trial(9.0, parents=(14.0, 10.0))]) == [1.0]


@pytest.mark.parametrize(
    ("parent", "worst", "expected"), [(10.0, 20.0, -1.0), (10.0, 10.25, -0.25), (10.0, 10.0, 0.0), (12.0, 10.0, 2.0)]
)
def test_paper_reward_counts_a_failed_child_as_slightly_worse_than_its_parent(
    parent: float, worst: float, expected: float
) -> None:
    """The published penalty is min(worst, parent + 1); any other would not reproduce the paper."""
    batch = [trial(9.0), trial(parents=(parent,), worst=worst)]
    assert values(paper, batch)[1] == expected


def test_paper_reward_counts_a_child_behind_the_worst_as_failed() -> None:
    """Without this cut one absurd tour length would flatten all other rewards of the batch."""
    assert values(paper, [trial(20.0), trial(20.5), trial(1e9)]) == [-10.0, -1.0, -1.0]


def test_paper_reward_has_its_stated_quirk() -> None:
    """The docstring says a valid child may get less than an invalid one: `ordered` is there because of it."""
    valid, failed = values(paper, [trial(19.0), trial()])
    assert valid < failed


def test_paper_reward_without_parents_measures_against_the_worst() -> None:
    """An operator without parents would have no reward at all."""
    assert values(paper, [trial(15.0, parents=()), trial(parents=())]) == [5.0, 0.0]


@pytest.mark.parametrize("reward", RELATIVE)
def test_a_batch_without_a_valid_child_gives_no_signal(reward: Reward) -> None:
    """Failed children of parents 10, 12.5 and 13 would get z-scores of -1.22, 0 and 1.22: pure noise."""
    batch = [trial(parents=(parent,), worst=13.0) for parent in (10.0, 12.5, 13.0)]
    rewards = reward(batch)
    assert "no candidate" in rewards.no_signal
    assert rewards.values == (None, None, None)


objectives = st.floats(-1e6, 1e6)
trials = st.builds(
    lambda objective, parents, worst, duplicate, status: trial(
        None if status else objective, status=status, parents=tuple(parents), worst=worst, duplicate=duplicate
    ),
    objective=objectives,
    parents=st.lists(objectives, max_size=3),
    worst=objectives,
    duplicate=st.booleans(),
    status=st.sampled_from([None, None, *FAILED]),
)


@pytest.mark.parametrize("reward", [ordered, sample, graded])
@given(batch=st.lists(trials, min_size=1, max_size=12))
def test_no_failed_child_is_ranked_above_a_valid_one(reward: Reward, batch: list[Trial]) -> None:
    """A model rewarded for failing where it could have been valid learns to fail."""
    rewards = reward(batch)
    scored = [(t.outcome.valid, v) for t, v in zip(batch, rewards.values, strict=True) if v is not None]
    best_failed = max((value for valid, value in scored if not valid), default=-math.inf)
    worst_valid = min((value for valid, value in scored if valid), default=math.inf)
    assert best_failed <= worst_valid


@pytest.mark.parametrize("reward", ALL)
@given(batch=st.lists(trials, min_size=1, max_size=12))
def test_rewards_are_finite_and_infrastructure_gets_none(reward: Reward, batch: list[Trial]) -> None:
    """A failure of ours counted as the candidate's would move the weights by accident."""
    rewards = reward(batch)
    assert len(rewards.values) == len(batch)
    for made, value in zip(batch, rewards.values, strict=True):
        if made.outcome.status is Status.INFRASTRUCTURE or rewards.no_signal:
            assert value is None
        else:
            assert value is not None
            assert math.isfinite(value)


def test_ordered_puts_failures_and_duplicates_one_spread_below_the_lowest_gain() -> None:
    """A duplicate that is paid like its original would teach the model to repeat itself."""
    found = values(ordered, [trial(9.0), trial(13.0), trial(), trial(8.0, duplicate=True)])
    assert found == [1.0, -3.0, -3.0 - float(np.std([1.0, -3.0])), -3.0 - float(np.std([1.0, -3.0]))]


def test_ordered_gives_no_signal_from_duplicates_alone() -> None:
    """A batch of copies would otherwise be compared with nothing."""
    assert ordered([trial(9.0, duplicate=True), trial()]).no_signal


def test_sample_reward_is_minus_the_objective_with_a_spread_below_for_failures() -> None:
    """Another penalty would not be the published Sample + ESOpt."""
    found = values(sample, [trial(6.0, parents=()), trial(8.0, parents=()), trial(parents=())])
    assert found == [-6.0, -8.0, -9.0]


@pytest.mark.parametrize(("objective", "penalty"), [(6.0, 1.0), (-500.0, 5.0), (0.0, 1.0)])
def test_sample_penalty_of_equal_objectives_is_a_hundredth_or_one(objective: float, penalty: float) -> None:
    """With no spread the penalty would be zero, and failing as good as the best program."""
    assert values(sample, [trial(objective), trial(objective), trial()])[2] == -objective - penalty


def test_graded_climbs_the_ladder_in_order() -> None:
    """Two rungs in the wrong order would teach a small model to go back a step."""
    rungs = [
        trial(status=Status.NO_CODE),
        trial(status=Status.WRONG_NAME),
        trial(status=Status.WRONG_ARGUMENTS),
        trial(status=Status.RAISED),
        trial(status=Status.RAISED, calls=3),
        trial(11.0),
        trial(9.0),
    ]
    assert [LEVELS[level(rung)] for rung in rungs] == [name for name in LEVELS if name != "valid"]
    assert values(graded, rungs) == [step / 7 for step in (0, 1, 2, 3, 4, 6, 7)]
    assert level(trial(status=Status.SYNTAX)) == 0
    assert level(trial(9.0, parents=())) == 6
    assert level(trial(10.0)) == 6


def test_graded_pays_a_copy_less_than_a_new_program() -> None:
    """A copy that earns what a new program earns would teach the model to repeat its parents."""
    assert LEVELS[level(trial(9.0, duplicate=True))] == "valid"


@pytest.mark.parametrize("status", [status for status in FAILED if status is not Status.INFRASTRUCTURE])
def test_every_failure_has_a_rung_below_valid(status: Status) -> None:
    """A new kind of failure that falls through the ladder would be paid like a valid program."""
    assert level(trial(status=status)) < LEVELS.index("valid")
    assert level(trial(status=status, calls=100)) < LEVELS.index("valid")


def test_graded_gives_a_signal_where_nothing_is_valid() -> None:
    """It exists for models whose candidates rarely run at all."""
    assert values(graded, [trial(status=Status.NO_CODE), trial(status=Status.RAISED, calls=1)]) == [0.0, 4 / 7]
