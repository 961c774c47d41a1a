"""From episodes to rewards: masks, quorums, and z-scores within tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_cases import settings

from operators.records import Direction, Proposal, Skip, Update
from operators.rewards import Trial
from operators.search import Situation
from operators.shaping import over_tasks
from train_adapters.adapter import AgentTask, Ending, Episode
from train_adapters.rewards import masked, strategy, trial

Grid = Sequence[Sequence[float | None]]


def trials(grid: Grid) -> list[Trial]:
    """One direction a row, one task a column; None for an episode that does not count."""
    found = []
    for row, rewards in enumerate(grid):
        for column, reward in enumerate(rewards):
            ending = Ending.INFRA_FAILED if reward is None else Ending.SCORED
            proposal = Proposal("train", f"task-{column}", "", (), Direction(row, 0.1))
            found.append(trial(proposal, Episode(f"task-{column}", 0, ending, reward)))
    return found


def test_what_does_not_count_is_left_out_of_the_mean() -> None:
    """Else a lost connection counts as a failure of the agent."""
    rewards = masked(0.5, 0.5, normalise=False)(trials([[1.0, None], [0.0, 0.5]]))
    assert rewards.values == (1.0, None, 0.0, 0.5)


def test_a_direction_below_its_quorum_does_not_count() -> None:
    """Else a direction is judged by the one task that happened to work."""
    rewards = masked(0.6, 0.5, normalise=False)(trials([[1.0, None], [0.0, 0.5]]))
    assert rewards.values == (None, None, 0.0, 0.5)


def test_a_generation_below_its_quorum_has_no_signal() -> None:
    """Else a step is made from the few directions that an outage has left."""
    grid = [[1.0], [None], [None], [0.0]]
    assert not masked(0.5, 0.5, normalise=False)(trials(grid)).no_signal
    rewards = masked(0.5, 0.6, normalise=False)(trials(grid))
    assert rewards.no_signal == "no quorum: 2 of 4 directions have enough episodes that count"
    assert set(rewards.values) == {None}


@pytest.mark.parametrize("count", range(1, 60))
def test_a_quorum_of_a_tenth_is_a_tenth(count: int) -> None:
    """Else rounding asks for one more: 0.1 x 30 is a little more than 3."""
    grid: list[list[float | None]] = [[1.0]] * count + [[None]] * (9 * count)
    assert not masked(1.0, 0.1, normalise=False)(trials(grid)).no_signal


_cells = st.one_of(st.none(), st.integers(-3, 3).map(float))
_grids = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(_cells, min_size=width, max_size=width), min_size=1))


@given(_grids)
def test_within_tasks_rewards_are_those_of_over_tasks(grid: Grid) -> None:
    """Else training has a second, other definition of the same normalisation."""
    rewards = masked(0.01, 0.01, normalise=True)(trials(grid))
    kept = [row for row in grid if any(cell is not None for cell in row)]
    if not kept:
        assert rewards.no_signal
        return
    scored = np.array([[cell is not None for cell in row] for row in kept])
    wanted = over_tasks(np.array([[cell or 0.0 for cell in row] for row in kept]), scored)
    values = iter(rewards.values)
    by_row = [{value for value in (next(values) for _ in row) if value is not None} for row in grid]
    assert [row.pop() for row in by_row if row] == pytest.approx(wanted.tolist())


def test_the_operator_of_the_search_makes_the_update() -> None:
    """Else training and search learn by different rules."""
    config = settings(batch=2, samples=1, directions=3, alpha=0.3, sigma=0.2)
    operator = strategy(config, [AgentTask("a", "train"), AgentTask("b", "train")])
    rng = np.random.default_rng(0)
    proposals = operator.ask(6, Situation((), 0, rng))
    assert [one.prompt for one in proposals] == ["a", "b"] * 3
    directions = [one.direction for one in proposals]
    assert directions[::2] == directions[1::2]
    assert len(set(directions)) == 3
    rewards = (0.0, 1.0, 0.0, 0.0, 1.0, 1.0)
    told = [
        trial(one, Episode(one.prompt, 0, Ending.SCORED, reward))
        for one, reward in zip(proposals, rewards, strict=True)
    ]
    update = operator.tell(0, told, rng)
    assert isinstance(update, Update)
    assert update.rewards == (0.5, 0.0, 1.0)
    assert update.weights == pytest.approx((0.0, -1.2247448, 1.2247448), abs=1e-6)
    assert (update.alpha, update.sigma) == (0.3, 0.2)


def test_equal_rewards_make_no_update() -> None:
    """Else a generation in which all directions did the same moves the weights at random."""
    config = settings(batch=1, samples=1, directions=3)
    operator = strategy(config, [AgentTask("a", "train")])
    proposals = operator.ask(3, Situation((), 0, np.random.default_rng(0)))
    told = [trial(one, Episode("a", 0, Ending.AGENT_FAILED, 0.1)) for one in proposals]
    decision = operator.tell(0, told, np.random.default_rng(0))
    assert decision == Skip(0, "all 3 directions had the same reward")
