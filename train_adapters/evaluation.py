"""What an agent is worth on a split: mean reward over repeats, with an interval over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from eoh_esopt.experiments.resampling import Resampling, paired_interval
from train_adapters.adapter import Episode
from train_adapters.failures import Failures, failures_of

CONFIDENCE = 0.95
_DRAWS = 4_999


@dataclass(frozen=True)
class Evaluation:
    """All repeats of an evaluation.

    Attributes:
        split: which tasks.
        success: least reward of a success.
        outcomes: by task id, the reward of each of its episodes; None for one that does not count.
        rewards: by task id, its mean reward over the repeats; tasks without an episode that counts are left out.
        repeats: mean reward of each repeat; None for one without an episode that counts.
        mean: over the tasks; None where none counts.
        low, high: confidence interval of the mean, tasks drawn with replacement; None where all tasks have the same
            reward, or there are fewer than two: drawing them again would say nothing.
        endings: how many episodes ended in which way.
        horizon: mean number of turns of the episodes that count.
        tokens: read and written.
        failures: episodes that were left out, by where they were played, see `train_adapters.failures`.
    """

    split: str
    success: float
    outcomes: Mapping[str, tuple[float | None, ...]]
    rewards: Mapping[str, float]
    repeats: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    endings: Mapping[str, int]
    horizon: float | None
    tokens: int
    failures: Failures = field(default_factory=dict)

    @property
    def spread(self) -> float | None:
        """Population standard deviation of the repeats' means; None with fewer than two."""
        known = [one for one in self.repeats if one is not None]
        return float(np.std(known)) if len(known) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """The figures, as logs and JSON hold them."""
        return {**asdict(self), "repeats": list(self.repeats), "spread": self.spread}


def evaluated(split: str, repeats: Sequence[Sequence[Episode]], seed: int, success: float) -> Evaluation:
    """The figures of an evaluation.

    Args:
        split: which tasks.
        repeats: of each repeat, one episode a task.
        seed: of the interval's resampling.
        success: least reward of a success.
    """
    episodes = [episode for repeat in repeats for episode in repeat]
    outcomes: dict[str, tuple[float | None, ...]] = {}
    for episode in episodes:
        outcomes[episode.task] = (*outcomes.get(episode.task, ()), episode.reward)
    counted = {task: [one for one in values if one is not None] for task, values in outcomes.items()}
    rewards = {task: float(np.mean(values)) for task, values in counted.items() if values}
    low, high = interval_over_tasks(list(rewards.values()), seed)
    turns = [episode.turns for episode in episodes if episode.ending.counts]
    return Evaluation(
        split=split,
        success=success,
        outcomes=outcomes,
        rewards=rewards,
        repeats=tuple(_mean([one.reward for one in repeat if one.reward is not None]) for repeat in repeats),
        mean=_mean(list(rewards.values())),
        low=low,
        high=high,
        endings=dict(Counter(episode.ending.value for episode in episodes)),
        horizon=_mean(turns),
        tokens=sum(episode.tokens for episode in episodes),
        failures=failures_of(episodes),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def interval_over_tasks(values: Sequence[float], seed: int) -> tuple[float | None, float | None]:
    """Confidence interval of the mean of one value a task, tasks drawn with replacement.

    Returns:
        Its ends; None where all tasks have the same value, or there are fewer than two.
    """
    if len(set(values)) < 2:
        return None, None
    found = paired_interval(np.array(values), CONFIDENCE, Resampling(draws=_DRAWS, seed=seed))
    return found.low, found.high
