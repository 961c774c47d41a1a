"""Resampling with counter-based random streams: any number of workers gives the same numbers.

The draws are cut into blocks of a fixed size; block i has the Philox stream of the key (seed, i), so what is drawn does
not depend on who draws it. joblib hands the blocks to workers.

Confidence intervals are bias-corrected and accelerated (BCa), see Efron, JASA 82 (1987). With few values any bootstrap
is too narrow: at 5 repetitions a 95 % interval covers rather 80 to 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
_Draw = Callable[[np.random.Generator, int], Values]

BLOCK = 10_000
"""Draws of one random stream."""


@dataclass(frozen=True)
class Resampling:
    """How often to draw and from which streams.

    Attributes:
        draws: how often.
        seed: of the streams.
        workers: processes to draw with; the numbers do not depend on it.
    """

    draws: int = 9_999
    seed: int = 2024
    workers: int = 1


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: its lower end.
        high: its upper end.
        kind: which bootstrap: "BCa", or "percentile" where that cannot be computed.
    """

    low: float
    high: float
    kind: str


def drawn_partitions(arm: Values, baseline: Values, resampling: Resampling) -> Values:
    """Differences of the means when all runs are dealt out to the two groups at random."""
    both, size = np.concatenate([arm, baseline]), len(arm)

    def draw(rng: np.random.Generator, count: int) -> Values:
        dealt = rng.permuted(np.broadcast_to(both, (count, len(both))), axis=1)
        return np.asarray(dealt[:, :size].mean(axis=1) - dealt[:, size:].mean(axis=1))

    return _draws(draw, resampling)


def drawn_flips(differences: Values, resampling: Resampling) -> Values:
    """Means of the paired differences when each has a random sign."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        signs = 2.0 * rng.integers(0, 2, size=(count, len(differences))) - 1.0
        return np.asarray((signs * differences).mean(axis=1))

    return _draws(draw, resampling)


def paired_interval(differences: Values, confidence: float, resampling: Resampling) -> Interval:
    """Confidence interval of the mean of paired differences: pairs are drawn with replacement. At least 2 pairs."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        return _resampled_means(rng, differences, count)

    jackknife = [_left_out_means(differences)]
    return _interval(float(differences.mean()), _draws(draw, resampling), jackknife, confidence)


def unpaired_interval(arm: Values, baseline: Values, confidence: float, resampling: Resampling) -> Interval:
    """Confidence interval of the difference of two means: each group is drawn with replacement by itself.

    Each group needs at least 2 values.
    """

    def draw(rng: np.random.Generator, count: int) -> Values:
        return _resampled_means(rng, arm, count) - _resampled_means(rng, baseline, count)

    jackknife = [_left_out_means(arm), -_left_out_means(baseline)]
    return _interval(float(arm.mean() - baseline.mean()), _draws(draw, resampling), jackknife, confidence)


def _draws(draw: _Draw, resampling: Resampling) -> Values:
    """All draws, block by block."""
    sizes = [min(BLOCK, resampling.draws - first) for first in range(0, resampling.draws, BLOCK)]
    blocks = Parallel(n_jobs=min(resampling.workers, len(sizes)))(
        delayed(_block)(draw, resampling.seed, index, size) for index, size in enumerate(sizes)
    )
    return np.concatenate(blocks)


def _block(draw: _Draw, seed: int, index: int, size: int) -> Values:
    key = np.array([seed, index], dtype=np.uint64)
    return draw(np.random.Generator(np.random.Philox(key=key)), size)


def _resampled_means(rng: np.random.Generator, values: Values, count: int) -> Values:
    chosen = rng.integers(0, len(values), size=(count, len(values)))
    return np.asarray(values[chosen].mean(axis=1))


def _left_out_means(values: Values) -> Values:
    """The means with each value left out in turn."""
    return np.asarray((values.sum() - values) / (len(values) - 1))


def _interval(observed: float, drawn: Values, jackknife: list[Values], confidence: float) -> Interval:
    """BCa from the draws and the jackknife of each group."""
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    kind = "BCa"
    below = (np.count_nonzero(drawn < observed) + np.count_nonzero(drawn <= observed)) / (2 * len(drawn))
    slopes = [(len(group) - 1) * (group.mean() - group) / len(group) for group in jackknife]
    largest = max(float(np.abs(slope).max()) for slope in slopes)
    if 0 < below < 1 and largest > 0:
        slopes = [slope / largest for slope in slopes]  # whose squares neither overflow nor vanish
        squares, cubes = (math.fsum(float((slope**power).sum()) for slope in slopes) for power in (2, 3))
        bias, acceleration = stats.norm.ppf(below), cubes / (6 * squares**1.5)
        shifted = bias + stats.norm.ppf(tails)
        tails = stats.norm.cdf(bias + shifted / (1 - acceleration * shifted))
    else:
        kind = "percentile"
    low, high = np.quantile(drawn, tails)
    return Interval(float(low), float(high), kind)
