"""How many repetitions a comparison needs, and what a given number of them can show. By the noncentral t distribution.

Effects are in standard deviations: of one group for unpaired runs (Cohen's d), of the paired differences for pairs
(d_z). See Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 2.
"""

from __future__ import annotations

import math

from scipy import optimize, stats

from eoh_esopt.experiments.statistics import Alternative

MOST = 10_000
"""Repetitions beyond which nobody would go."""

LEVEL = 0.05
"""The level at which a difference is called one."""


def power(effect: float, repetitions: int, *, paired: bool, alternative: Alternative = "better") -> float:
    """The chance that a t-test at `LEVEL` finds an effect.

    Args:
        effect: in standard deviations.
        repetitions: of each arm; pairs where runs are paired. At least 2.
        paired: whether runs are paired.
        alternative: of the test.
    """
    freedom = repetitions - 1 if paired else 2 * repetitions - 2
    shift = effect * math.sqrt(repetitions if paired else repetitions / 2)
    tail = LEVEL if alternative == "better" else LEVEL / 2
    bound = float(stats.t.isf(tail, freedom))
    found = float(stats.nct.sf(bound, freedom, shift))
    return found if alternative == "better" else found + float(stats.nct.cdf(-bound, freedom, shift))


def repetitions_needed(
    effect: float, *, paired: bool, wanted: float = 0.8, alternative: Alternative = "better"
) -> int | None:
    """The least repetitions of each arm that find an effect with the wanted power.

    None where the effect is none or goes the wrong way, or `MOST` repetitions are too few.

    Args:
        effect: in standard deviations, positive where the arm is better.
        paired: whether runs are paired.
        wanted: the power.
        alternative: of the test.
    """
    size = effect if alternative == "better" else abs(effect)

    def enough(repetitions: int) -> bool:
        return power(size, repetitions, paired=paired, alternative=alternative) >= wanted

    if size <= 0:
        return None
    low, high = 1, 2
    while not enough(high):  # upwards, because scipy's noncentral t gives NaN far out
        low, high = high, 2 * high
        if low >= MOST:
            return None
    while high - low > 1:  # low is not enough, high is
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def visible_effect(
    repetitions: int, *, paired: bool, wanted: float = 0.8, alternative: Alternative = "better"
) -> float | None:
    """The least effect, in standard deviations, that so many repetitions find with the wanted power.

    None for a single repetition.
    """
    if repetitions < 2:
        return None

    def missing(effect: float) -> float:
        return wanted - power(effect, repetitions, paired=paired, alternative=alternative)

    high = 1.0
    while missing(high) > 0:  # upwards, because scipy's noncentral t gives NaN far out
        high *= 2
    return float(optimize.brentq(missing, 0.0, high))
