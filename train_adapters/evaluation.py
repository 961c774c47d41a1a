"""What an agent is worth on a split: mean reward over repeats, with an interval over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eoh_esopt.experiments.resampling import Resampling, paired_interval
from train_adapters.adapter import Episode

CONFIDENCE = 0.95
_DRAWS = 4_999


@dataclass(frozen=True)
class Evaluation:
    """All repeats of an evaluation.

    Attributes:
        split: which tasks.
        rewards: by task id, its mean reward over the repeats; tasks without an episode that counts are left out.
        repeats: mean reward of each repeat; None for one without an episode that counts.
        mean: over the tasks; None where none counts.
        low, high: confidence interval of the mean, tasks drawn with replacement; None where all tasks have the same
            reward, or there are fewer than two: drawing them again would say nothing.
        endings: how many episodes ended in which way.
        horizon: mean number of turns of the episodes that count.
        tokens: read and written.
    """

    split: str
    rewards: Mapping[str, float]
    repeats: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    endings: Mapping[str, int]
    horizon: float | None
    tokens: int

    @property
    def spread(self) -> float | None:
        """Population standard deviation of the repeats' means; None with fewer than two."""
        known = [one for one in self.repeats if one is not None]
        return float(np.std(known)) if len(known) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """The figures, as logs and JSON hold them."""
        return {**asdict(self), "repeats": list(self.repeats), "spread": self.spread}


def evaluated(split: str, repeats: Sequence[Sequence[Episode]], seed: int) -> Evaluation:
    """The figures of an evaluation.

    Args:
        split: which tasks.
        repeats: of each repeat, one episode a task.
        seed: of the interval's resampling.
    """
    episodes = [episode for repeat in repeats for episode in repeat]
    by_task: dict[str, list[float]] = {}
    for episode in episodes:
        if episode.reward is not None:
            by_task.setdefault(episode.task, []).append(episode.reward)
    rewards = {task: float(np.mean(values)) for task, values in by_task.items()}
    low, high = _interval(list(rewards.values()), seed)
    turns = [episode.turns for episode in episodes if episode.ending.counts]
    return Evaluation(
        split=split,
        rewards=rewards,
        repeats=tuple(_mean([one.reward for one in repeat if one.reward is not None]) for repeat in repeats),
        mean=_mean(list(rewards.values())),
        low=low,
        high=high,
        endings=dict(Counter(episode.ending.value for episode in episodes)),
        horizon=_mean(turns),
        tokens=sum(episode.tokens for episode in episodes),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _interval(values: Sequence[float], seed: int) -> tuple[float | None, float | None]:
    if len(set(values)) < 2:
        return None, None
    found = paired_interval(np.array(values), CONFIDENCE, Resampling(draws=_DRAWS, seed=seed))
    return found.low, found.high
