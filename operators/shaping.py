"""Reward shaping: from the rewards of a batch of directions to the weights of its update."""

from __future__ import annotations

from collections.abc import Callable

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


def shuffled(shaping: Shaping) -> Shaping:
    """The control: the same weights, dealt out to the directions at random. Nothing can be learnt from them."""

    def shape(rewards: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.permutation(shaping(rewards, rng))

    return shape
