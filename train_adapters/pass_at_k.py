"""Mean@k and Pass@k: what one try is worth on average, and what the best of k tries is.

From n episodes of a task, c of them successes, the unbiased estimate of Pass@k is 1 - C(n - c, k) / C(n, k): the share
of the ways to pick k of the n in which there is a success (Chen et al., arXiv:2107.03374, eq. 1). For rewards between
failure and success the same picks give the mean of their best reward. Mean@k is the mean over k episodes, and its
unbiased estimate from n the mean over all of them, whatever k is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from train_adapters.evaluation import Evaluation, interval_over_tasks

LONGEST = 32
"""Largest k of a curve."""


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks.

    Attributes:
        value: the mean.
        low, high: its confidence interval, tasks drawn with replacement; None where all tasks have the same value.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CurvePoint:
    """What k tries are worth.

    Attributes:
        k: number of tries.
        tasks: those with at least k episodes that count; the others are left out.
        mean_at: Mean@k, share of successes.
        pass_at: Pass@k, share of tasks with a success among k tries.
        mean_reward: of one try.
        best_reward: of the best of k tries.
    """

    k: int
    tasks: int
    mean_at: Estimate
    pass_at: Estimate
    mean_reward: Estimate
    best_reward: Estimate


def best_of(values: Sequence[float], k: int) -> float:
    """Expected largest of k values that are picked from the given ones without replacement.

    Args:
        values: n of them, 1 for a success and 0 for a failure where Pass@k is wanted.
        k: how many are picked, from 1 to n.

    Raises:
        ValueError: k is out of that range.
    """
    n = len(values)
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and the {n} values, not be {k}")
    # The value at place i of the sorted ones is the largest of C(i, k - 1) picks.
    return sum(math.comb(i, k - 1) / math.comb(n, k) * value for i, value in enumerate(sorted(values)) if i >= k - 1)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate of Pass@k of a task from n episodes with c successes: 1 - C(n - c, k) / C(n, k)."""
    return best_of([0.0] * (n - c) + [1.0] * c, k)


def curve(evaluation: Evaluation, seed: int) -> list[CurvePoint]:
    """The points for k = 1, 2, ... up to the repeats, at most `LONGEST`; none where nothing counts.

    Args:
        evaluation: with the rewards of all episodes.
        seed: of the intervals' resampling.
    """
    counted = [[one for one in values if one is not None] for values in evaluation.outcomes.values()]
    most = min(max(map(len, counted), default=0), LONGEST)
    return [_point([one for one in counted if len(one) >= k], k, evaluation.success, seed) for k in range(1, most + 1)]


def _point(tasks: Sequence[Sequence[float]], k: int, success: float, seed: int) -> CurvePoint:
    wins = [_wins(rewards, success) for rewards in tasks]

    def estimate(values: Sequence[float]) -> Estimate:
        return Estimate(float(np.mean(values)), *interval_over_tasks(values, seed))

    return CurvePoint(
        k=k,
        tasks=len(tasks),
        mean_at=estimate([float(np.mean(one)) for one in wins]),
        pass_at=estimate([best_of(one, k) for one in wins]),
        mean_reward=estimate([float(np.mean(one)) for one in tasks]),
        best_reward=estimate([best_of(one, k) for one in tasks]),
    )


def _wins(rewards: Sequence[float], success: float) -> list[float]:
    return [float(reward >= success) for reward in rewards]


def as_record(evaluation: Evaluation, points: Sequence[CurvePoint]) -> dict[str, Any]:
    """The evaluation, its curve, and every task, for programs."""
    tasks = {task: _task(values, evaluation.success) for task, values in evaluation.outcomes.items()}
    return {**evaluation.as_dict(), "curve": [asdict(point) for point in points], "tasks": tasks}


def _task(outcomes: Sequence[float | None], success: float) -> Mapping[str, Any]:
    rewards = [one for one in outcomes if one is not None]
    wins, ks = _wins(rewards, success), range(1, min(len(rewards), LONGEST) + 1)
    return {
        "episodes": len(rewards),
        "left_out": len(outcomes) - len(rewards),
        "successes": int(sum(wins)),
        "mean_reward": float(np.mean(rewards)) if rewards else None,
        "pass_at": [best_of(wins, k) for k in ks],
        "best_reward": [best_of(rewards, k) for k in ks],
    }
