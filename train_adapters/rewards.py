"""From the episodes of a generation to what the operator of evolution strategies is told.

The operator is the search's own, wrapped around a list of tasks: an episode takes the place of a candidate, and its
objective is minus its reward, since objectives are better when lower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operators.evolution_strategy import EvolutionStrategy
from operators.records import Direction, Outcome, Proposal, Status
from operators.rewards import Reward, Rewards, Trial
from operators.schedules import SCHEDULES
from operators.search import Situation
from operators.shaping import SHAPINGS, over_tasks
from train_adapters.adapter import AgentTask, Episode
from train_adapters.config import TrainConfig

NAME = "train"
"""The operator's name in logs."""


@dataclass(frozen=True)
class TaskBatch:
    """The tasks of a generation as an operator: its proposals are the episodes of one direction, over and over.

    Attributes:
        tasks: of the generation.
        samples: episodes of each task under each direction.
    """

    tasks: tuple[AgentTask, ...]
    samples: int
    name: str = NAME

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """Exactly `count` proposals, whose prompt is the id of the task."""
        once = [Proposal(NAME, task.id, "", ()) for task in self.tasks for _ in range(self.samples)]
        return [once[index % len(once)] for index in range(count)]

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> None:
        """Nothing to learn."""


def strategy(config: TrainConfig, tasks: Sequence[AgentTask]) -> EvolutionStrategy:
    """Evolution strategies over the episodes of a generation.

    Args:
        config: settings with every default filled in, see `TrainConfig.resolved`.
        tasks: of the generation.
    """
    assert config.sigma is not None
    assert config.sigma_final is not None
    assert config.alpha is not None
    return EvolutionStrategy(
        inner=TaskBatch(tuple(tasks), config.samples),
        reward=masked(config.quorum, config.direction_quorum, normalise=config.over_tasks),
        sigma=SCHEDULES[config.sigma_schedule](config.sigma, config.sigma_final, config.plan.generations),
        alpha=config.alpha,
        samples_per_direction=config.episodes,
        shaping=SHAPINGS[config.shaping],
        antithetic=config.antithetic,
    )


def trial(proposal: Proposal, episode: Episode) -> Trial:
    """An episode as the operator is told of it; one that does not count is a failure of the infrastructure."""
    if episode.reward is None:
        return Trial(proposal, Outcome(Status.INFRASTRUCTURE, detail=episode.reason), 0.0)
    return Trial(proposal, Outcome(Status.OK, objective=-episode.reward), 0.0)


def masked(quorum: float, direction_quorum: float, *, normalise: bool) -> Reward:
    """Rewards of the episodes that count, of the directions that have enough of them.

    Args:
        quorum: share of a direction's episodes that must count.
        direction_quorum: share of the directions that must count, else the generation has no signal.
        normalise: whether rewards are z-scores within each task.
    """

    def reward(trials: Sequence[Trial]) -> Rewards:
        values = [None if one.outcome.objective is None else -one.outcome.objective for one in trials]
        of_direction: dict[Direction | None, list[int]] = {}
        for place, one in enumerate(trials):
            of_direction.setdefault(one.proposal.direction, []).append(place)
        kept = [places for places in of_direction.values() if _enough(places, values, quorum)]
        least = _least(direction_quorum, len(of_direction))
        if len(kept) < least:
            reason = f"no quorum: {len(kept)} of {len(of_direction)} directions have enough episodes that count"
            return Rewards((None,) * len(trials), reason)
        counting = {place for places in kept for place in places}
        values = [value if place in counting else None for place, value in enumerate(values)]
        return Rewards(tuple(_normalised(trials, values, kept) if normalise else values))

    return reward


def _enough(places: Sequence[int], values: Sequence[float | None], quorum: float) -> bool:
    counted = sum(values[place] is not None for place in places)
    return counted >= _least(quorum, len(places))


def _least(share: float, count: int) -> int:
    """How many of `count` a share is, at least 1; what it is off by rounding does not cost one more."""
    return max(1, math.ceil(share * count - 1e-9))


def _normalised(
    trials: Sequence[Trial], values: Sequence[float | None], directions: Sequence[Sequence[int]]
) -> list[float | None]:
    """Every episode that counts has the reward of its direction over the tasks."""
    tasks = {name: column for column, name in enumerate(dict.fromkeys(one.proposal.prompt for one in trials))}
    sums, counts = np.zeros((2, len(directions), len(tasks)))
    for row, places in enumerate(directions):
        for place in places:
            value, column = values[place], tasks[trials[place].proposal.prompt]
            if value is not None:
                sums[row, column] += value
                counts[row, column] += 1
    means = over_tasks(sums / np.maximum(counts, 1), counts > 0)
    found: list[float | None] = [None] * len(values)
    for mean, places in zip(means.tolist(), directions, strict=True):
        for place in places:
            if values[place] is not None:
                found[place] = mean
    return found
