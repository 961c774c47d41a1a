"""Tests, effects and corrections for a handful of repetitions. Pure functions on arrays; scipy does the tests.

Two groups are told apart as `arm` and `baseline`; in both a larger value is better. Every p is for the alternative that
is asked for: "better" (one-sided, the arm is better than the baseline) or "two-sided". Where a test has nothing to say
it raises `Undefined`, whose text says why.

Sources: Student's t-test with equal variances is the one that the method's paper reports (Table 17); Hedges, J. Educ.
Stat. 6 (1981) for g; Holm, Scand. J. Stat. 6 (1979); Pratt, JASA 54 (1959) for differences of zero in the signed-rank
test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from eoh_esopt.experiments.resampling import Resampling, drawn_flips, drawn_partitions

Alternative = Literal["better", "two-sided"]
Values = NDArray[np.float64]

EXACT_UP_TO = 50_000
"""Arrangements that are gone through one by one; where there are more, some are drawn."""

EQUAL = 1e-9
"""Relative difference below which two values are the same but for rounding."""

_SIDE: dict[Alternative, Literal["greater", "two-sided"]] = {"better": "greater", "two-sided": "two-sided"}
_EVERY = EXACT_UP_TO + 1
"""Resamples that make scipy go through all arrangements where they are at most `EXACT_UP_TO`."""


class Undefined(Exception):
    """A test or an effect does not exist for these values; the message says why."""


@dataclass(frozen=True)
class PValue:
    """What a test says.

    Attributes:
        p: the probability of a difference like this or more extreme if there were none.
        kind: how it was obtained: "exact", "normal approximation", "9999 drawn", "equal variances", ...
        exact: whether arrangements were counted, all of them: then p cannot be less than `smallest_p`.
    """

    p: float
    kind: str
    exact: bool = False


@dataclass(frozen=True)
class Description:
    """Of one group.

    Attributes:
        mean: of its values.
        sd: standard deviation of the sample (ddof 1); None for a single value.
        median: of its values.
    """

    mean: float
    sd: float | None
    median: float


def describe(values: ArrayLike) -> Description:
    """Mean, standard deviation and median of at least one value."""
    group = np.asarray(values, dtype=np.float64)
    return Description(_mean(group), float(np.std(group, ddof=1)) if len(group) > 1 else None, float(np.median(group)))


def hedges_g(arm: ArrayLike, baseline: ArrayLike) -> float:
    """The difference of the means in pooled standard deviations, freed of its bias for small groups (Hedges' g).

    Raises:
        Undefined: a group has one value, or no group has spread.
    """
    first, second = _groups(arm, baseline)
    freedom = len(first) + len(second) - 2
    pooled = math.sqrt((_squares(first) + _squares(second)) / freedom)
    if pooled == 0:
        raise Undefined("neither group has any spread")
    correction = math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return (_mean(first) - _mean(second)) / pooled * (correction if freedom > 1 else 1.0)


def cohen_dz(differences: ArrayLike) -> float:
    """The mean of the paired differences in their standard deviations (Cohen's d_z).

    Raises:
        Undefined: there is one pair, or the differences have no spread.
    """
    found = _differences(differences)
    spread = math.sqrt(_squares(found) / (len(found) - 1))
    if spread == 0:
        raise Undefined("all differences are equal")
    return _mean(found) / spread


def t_test(arm: ArrayLike, baseline: ArrayLike, alternative: Alternative = "better") -> PValue:
    """Student's t-test with equal variances, unpaired: the paper's.

    Raises:
        Undefined: a group has one value, or no group has spread.
    """
    first, second = (Summary.of(group) for group in _groups(arm, baseline))
    return t_test_of_summaries(first, second, alternative)


def welch(arm: ArrayLike, baseline: ArrayLike, alternative: Alternative = "better") -> PValue:
    """Welch's t-test, unpaired: the variances may differ.

    Raises:
        Undefined: a group has one value, or no group has spread.
    """
    first, second = (Summary.of(group) for group in _groups(arm, baseline))
    return PValue(_t(first, second, alternative, equal=False), "unequal variances")


@dataclass(frozen=True)
class Summary:
    """What papers print of a group: mean, standard deviation (ddof 1) and number of repetitions."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Values) -> Summary:
        """Of at least two values."""
        return cls(_mean(values), math.sqrt(_squares(values) / (len(values) - 1)), len(values))


def t_test_of_summaries(arm: Summary, baseline: Summary, alternative: Alternative = "better") -> PValue:
    """Student's t-test with equal variances, from means and deviations alone; a larger mean is better.

    Raises:
        Undefined: a group has one value, or no group has spread.
    """
    return PValue(_t(arm, baseline, alternative, equal=True), "equal variances")


def rounded_range(
    arm: Summary, baseline: Summary, digits: int, alternative: Alternative = "better"
) -> tuple[float, float]:
    """The least and the greatest p that are left open when means and deviations are rounded to so many decimals.

    One-sided p is monotone in each of the four figures, so that the extremes lie at the corners.
    """
    half = 0.5 * 10**-digits
    found = []
    for moved in itertools.product((-half, half), repeat=4):
        first = Summary(arm.mean + moved[0], max(arm.sd + moved[1], 0.0), arm.n)
        second = Summary(baseline.mean + moved[2], max(baseline.sd + moved[3], 0.0), baseline.n)
        found.append(t_test_of_summaries(first, second, alternative).p)
    return min(found), max(found)


def mann_whitney(arm: ArrayLike, baseline: ArrayLike, alternative: Alternative = "better") -> PValue:
    """Mann and Whitney's U test, unpaired. Exact without ties, and with them where the arrangements are few enough.

    Raises:
        Undefined: a group has one value, or all values are equal.
    """
    first, second = _groups(arm, baseline)
    both = np.concatenate([first, second])
    if len(np.unique(both)) == 1:
        raise Undefined("all values are equal")
    tied = len(np.unique(both)) < len(both)
    way = _way(tied, math.comb(len(both), len(first)))
    found = stats.mannwhitneyu(first, second, alternative=_SIDE[alternative], method=way or "asymptotic")
    return _ranked(float(found.pvalue), exact=way is not None)


def wilcoxon(differences: ArrayLike, alternative: Alternative = "better") -> PValue:
    """Wilcoxon's signed-rank test of paired differences; those of zero are ranked too (Pratt). Exact as `mann_whitney`.

    Raises:
        Undefined: there is one pair, or all differences are zero.
    """
    found = _differences(differences)
    if not found.any():
        raise Undefined("all differences are zero")
    sizes = np.abs(found)
    tied = len(np.unique(sizes)) < len(sizes) or not found.all()
    way = _way(tied, 2 ** len(found))
    result = stats.wilcoxon(found, zero_method="pratt", alternative=_SIDE[alternative], method=way or "approx")
    return _ranked(float(result.pvalue), exact=way is not None)


def permutation(
    arm: ArrayLike, baseline: ArrayLike, alternative: Alternative = "better", resampling: Resampling | None = None
) -> PValue:
    """Permutation test of the difference of the means, unpaired: runs change places between the groups.

    Args:
        resampling: how partitions are drawn where they are more than `EXACT_UP_TO`.

    Raises:
        Undefined: a group has one value, or all values are equal.
    """
    first, second = _groups(arm, baseline)
    if np.ptp(np.concatenate([first, second])) == 0:
        raise Undefined("all values are equal")
    if math.comb(len(first) + len(second), len(first)) > EXACT_UP_TO:
        resampling = resampling or Resampling()
        return _drawn(_mean(first) - _mean(second), drawn_partitions(first, second, resampling), alternative)
    lowest = min(first.min(), second.min())
    groups = (first - lowest, second - lowest)
    found = stats.permutation_test(groups, _sum_of_arm, n_resamples=_EVERY, alternative=_SIDE[alternative])
    return PValue(float(found.pvalue), "exact", exact=True)


def sign_flips(
    differences: ArrayLike, alternative: Alternative = "better", resampling: Resampling | None = None
) -> PValue:
    """Permutation test of the mean of paired differences: the two runs of a pair change places.

    Args:
        resampling: how signs are drawn where their arrangements are more than `EXACT_UP_TO`.

    Raises:
        Undefined: there is one pair, or all differences are zero.
    """
    found = _differences(differences)
    if not found.any():
        raise Undefined("all differences are zero")
    if 2 ** len(found) > EXACT_UP_TO:
        return _drawn(_mean(found), drawn_flips(found, resampling or Resampling()), alternative)
    result = stats.permutation_test(
        (found,), _sum_of_gains, permutation_type="samples", n_resamples=_EVERY, alternative=_SIDE[alternative]
    )
    return PValue(float(result.pvalue), "exact", exact=True)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction: p values for which the chance of any false alarm among them stays below the level."""
    count, adjusted, so_far = len(values), [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(count), key=lambda index: values[index])):
        so_far = max(so_far, min(1.0, (count - rank) * values[place]))
        adjusted[place] = so_far
    return adjusted


def smallest_p(arm: int, baseline: int | None, alternative: Alternative = "better") -> float:
    """The least p that counting arrangements can give, reached when every run of the arm beats every one it meets.

    Holds for the exact permutation test and for the exact rank tests without ties.

    Args:
        arm: its repetitions; the number of pairs where runs are paired.
        baseline: its repetitions; None where runs are paired.
    """
    arrangements = 2**arm if baseline is None else math.comb(arm + baseline, arm)
    return min(1.0, (1 if alternative == "better" else 2) / arrangements)


def without_rounding(values: Values, size: float) -> Values:
    """Values that differ by nothing but rounding made equal: to zero where they are that small, else to the first.

    Args:
        values: at least one.
        size: of the numbers that the values were computed from; rounding is what is below `EQUAL` times that.
    """
    values = np.where(np.abs(values) <= EQUAL * size, 0.0, values)
    return np.full_like(values, values[0]) if np.ptp(values) <= EQUAL * size else values


def _t(arm: Summary, baseline: Summary, alternative: Alternative, *, equal: bool) -> float:
    if min(arm.n, baseline.n) < 2:
        raise Undefined("it needs at least 2 repetitions of each arm")
    if arm.sd == baseline.sd == 0:
        raise Undefined("neither group has any spread")
    figures = (arm.mean, arm.sd, arm.n, baseline.mean, baseline.sd, baseline.n)
    found = stats.ttest_ind_from_stats(*figures, equal_var=equal, alternative=_SIDE[alternative])
    return float(found.pvalue)


def _way(tied: bool, arrangements: int) -> Literal["exact"] | stats.PermutationMethod | None:
    """How scipy is to count the arrangements of ranks; None where they are tied and too many."""
    if not tied:
        return "exact"
    return stats.PermutationMethod(n_resamples=_EVERY) if arrangements <= EXACT_UP_TO else None


def _ranked(p: float, *, exact: bool) -> PValue:
    return PValue(p, "exact" if exact else "normal approximation", exact)


def _groups(arm: ArrayLike, baseline: ArrayLike) -> tuple[Values, Values]:
    first, second = (np.asarray(one, dtype=np.float64) for one in (arm, baseline))
    if min(len(first), len(second)) < 2:
        raise Undefined("it needs at least 2 repetitions of each arm")
    return first, second


def _differences(differences: ArrayLike) -> Values:
    found = np.asarray(differences, dtype=np.float64)
    if len(found) < 2:
        raise Undefined("it needs at least 2 pairs")
    return found


def _mean(values: Values) -> float:
    """Exactly the same for the same values in any order, and the value itself where all are equal."""
    return float(values[0]) if np.ptp(values) == 0 else math.fsum(values) / len(values)


def _squares(values: Values) -> float:
    """Sum of the squared deviations from the mean."""
    return math.fsum((values - _mean(values)) ** 2)


# Both grow with the difference of the means and are never negative: scipy takes statistics for tied within a relative
# rounding error, which a difference near zero would leave no room for.


def _sum_of_arm(arm: Values, _baseline: Values, axis: int = -1) -> Values:
    return np.asarray(arm.sum(axis=axis))


def _sum_of_gains(differences: Values, axis: int = -1) -> Values:
    return np.asarray(np.maximum(differences, 0.0).sum(axis=axis))


def _drawn(observed: float, drawn: Values, alternative: Alternative) -> PValue:
    """p of a statistic among drawn ones; the observed arrangement counts as one of them, so that p is never 0."""
    slack = 1e-12 * max(abs(observed), float(np.abs(drawn).max()))  # sums in another order differ in the last digits
    above = int((drawn >= observed - slack).sum())
    below = int((drawn <= observed + slack).sum())
    better = (1 + above) / (1 + len(drawn))
    worse = (1 + below) / (1 + len(drawn))
    p = better if alternative == "better" else min(1.0, 2 * min(better, worse))
    return PValue(p, f"{len(drawn)} drawn")
