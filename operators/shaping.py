"""Reward shaping: from the rewards of a batch of directions to the weights of its update."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Shaping = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]
"""Takes the G rewards and a random stream, returns G weights. Most shapings leave the stream alone."""

_MIN_RELATIVE_SPREAD = 1e-9


def has_spread(rewards: NDArray[np.float64]) -> bool:
    """Whether the rewards differ by more than rounding: z-scores of equal rewards would be a full-sized random step."""
    return bool(np.std(rewards) > _MIN_RELATIVE_SPREAD * max(1.0, float(np.abs(rewards).max())))


def z_score(rewards: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """(R - mean) / (std + 1e-8) with the population's standard deviation, in float64 (the paper's shaping)."""
    scores: NDArray[np.float64] = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
    return scores


def centred_rank(rewards: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Ranks of two or more rewards, scaled to -0.5 (lowest) .. 0.5 (highest); equal ones share the mean of their ranks.

    Only the order of the rewards counts, so an outlier weighs no more than the next one. Without ties the weights'
    standard deviation is 0.29 to 0.5 where that of z-scores is 1 (0.32 for 10 directions), and so is the step.
    Source: Salimans et al., arXiv 1703.03864, section 2.1; after Wierstra et al., "Natural evolution strategies".
    """
    _, group, sizes = np.unique(rewards, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(sizes) - (sizes + 1) / 2  # of each group of equal rewards, from 0
    ranks: NDArray[np.float64] = mean_ranks[group] / (len(rewards) - 1) - 0.5
    return ranks


SHAPINGS: Mapping[str, Shaping] = {"z-score": z_score, "centred-rank": centred_rank}
"""By the names that users give."""


def shuffled(shaping: Shaping) -> Shaping:
    """The control: the same weights, dealt out to the directions at random. Nothing can be learnt from them."""

    def shape(rewards: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.permutation(shaping(rewards, rng))

    return shape


def over_tasks(rewards: NDArray[np.float64], scored: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """One reward a direction from its rewards on several tasks, none of which counts more for being harder or wider.

    Each task's rewards become z-scores over the directions (population standard deviation), and a direction gets the
    mean over its tasks. A task on which all directions got the same adds nothing but counts in the mean. The result
    takes the place of plain mean rewards before shaping.
    Source: as advantages are normalised by prompt in GRPO (Shao et al., arXiv 2402.03300, section 4.1) and, for
    evolution strategies, in EGGROLL (arXiv 2511.16652).

    Args:
        rewards: shape (directions, tasks).
        scored: shape (directions, tasks), which of them count; None for all. What else stands there is not looked at.

    Returns:
        Shape (directions,), float64.

    Raises:
        ValueError: the shapes differ, or a direction has no task that counts (errors of the caller).
    """
    counts = np.ones(rewards.shape, bool) if scored is None else scored
    if rewards.ndim != 2 or counts.shape != rewards.shape:
        raise ValueError(f"rewards {rewards.shape} and scored {counts.shape} must both be (directions, tasks).")
    if not counts.any(axis=1).all():
        raise ValueError(f"Direction {int(np.argmin(counts.any(axis=1)))} was scored on no task.")
    scores = np.zeros(rewards.shape)
    for task, present in enumerate(counts.T):
        values = rewards[present, task]
        if len(values) and has_spread(values):
            scores[present, task] = (values - values.mean()) / values.std()
    means: NDArray[np.float64] = scores.sum(axis=1) / counts.sum(axis=1)
    return means
