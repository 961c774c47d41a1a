"""The tests of a comparison against scipy, against counting by hand, and against what the method's paper reports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eoh_esopt.experiments import statistics
from eoh_esopt.experiments.resampling import Resampling
from eoh_esopt.experiments.statistics import Summary, Undefined, holm, smallest_p

Values = list[float]
number = st.floats(-100, 100, allow_nan=False).map(lambda one: round(one, 2))
few = st.lists(number, min_size=3, max_size=5)
SIDES = ("better", "two-sided")


@pytest.mark.parametrize(
    ("baseline", "arm", "published", "computed"),
    [
        pytest.param(Summary(-6.5517, 0.0729, 20), Summary(-6.5007, 0.0868, 20), 0.0258, 0.02567, id="TSP-50"),
        pytest.param(Summary(40.1562, 0.0024, 20), Summary(40.1578, 0.0017, 20), 0.0100, 0.00990, id="KP-100"),
    ],
)
def test_published_p_follows_from_the_published_summaries(
    baseline: Summary, arm: Summary, published: float, computed: float
) -> None:
    """Else our t-test is another than the one that the published claims rest on."""
    p = statistics.t_test_of_summaries(arm, baseline).p
    low, high = statistics.rounded_range(arm, baseline, digits=4)
    assert p == pytest.approx(computed, abs=5e-6)
    assert low < published < high
    assert p == pytest.approx(published, abs=2e-4)


@pytest.mark.parametrize("side", SIDES)
def test_summaries_give_the_p_of_the_values(side: statistics.Alternative) -> None:
    """Else a paper's means and our own runs are judged by different tests."""
    arm, baseline = np.array([3.0, 4.5, 5.0, 4.0]), np.array([3.5, 2.0, 3.0])
    summaries = [Summary(float(one.mean()), float(one.std(ddof=1)), len(one)) for one in (arm, baseline)]
    found = statistics.t_test_of_summaries(summaries[0], summaries[1], side).p
    assert found == pytest.approx(statistics.t_test(arm, baseline, side).p, rel=1e-12)


@given(few, few)
@settings(max_examples=40, deadline=None)
def test_exact_permutation_counts_arrangements(arm: Values, baseline: Values) -> None:
    """Else "exact" is a word only."""
    both = np.array(arm + baseline)
    if np.ptp(both) == 0:
        with pytest.raises(Undefined, match="all values are equal"):
            statistics.permutation(arm, baseline)
        return
    places = itertools.combinations(range(len(both)), len(arm))
    sums = np.array([math.fsum(both[list(chosen)]) for chosen in places])
    expected = np.mean(sums >= math.fsum(arm) - 1e-9)
    assert statistics.permutation(arm, baseline).p == pytest.approx(expected, abs=1e-12)


@given(few, few)
@settings(max_examples=40, deadline=None)
def test_two_sided_permutation_does_not_know_which_group_is_which(arm: Values, baseline: Values) -> None:
    """Else naming the other arm the baseline changes whether there is a difference."""
    if np.ptp(arm + baseline) == 0:
        return
    first = statistics.permutation(arm, baseline, "two-sided")
    second = statistics.permutation(baseline, arm, "two-sided")
    assert first.p == pytest.approx(second.p, abs=1e-12)


@given(st.lists(number, min_size=2, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_paired_tests_do_not_depend_on_the_order_of_the_pairs(differences: Values, random: object) -> None:
    """Else the order in which folders are listed decides about significance."""
    if not any(differences):
        return
    shuffled = list(differences)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for test in (statistics.sign_flips, statistics.wilcoxon):
        assert test(shuffled).p == pytest.approx(test(differences).p, abs=1e-12)


def test_sign_flips_count_all_signs() -> None:
    """Else a paired comparison of 5 seeds says another p than 1 of 32 when every seed is better."""
    found = statistics.sign_flips([0.1, 0.4, 0.2, 0.3, 0.5])
    assert (found.p, found.kind, found.exact) == (1 / 32, "exact", True)
    assert statistics.sign_flips([-0.1, -0.4, -0.2, -0.3, -0.5]).p == 1.0


@pytest.mark.parametrize("side", SIDES)
def test_the_smallest_p_is_what_the_best_possible_outcome_gives(side: statistics.Alternative) -> None:
    """Else a reader is told of a p that no outcome can reach, or misses that none can be below 0.05."""
    for n in (3, 4, 5):
        arm, baseline = np.arange(n) + 10.0, np.arange(n) + 0.5
        assert statistics.permutation(arm, baseline, side).p == pytest.approx(smallest_p(n, n, side))
        assert statistics.mann_whitney(arm, baseline, side).p == pytest.approx(smallest_p(n, n, side))
        gains = np.arange(n) + 1.0
        assert statistics.sign_flips(gains, side).p == pytest.approx(smallest_p(n, None, side))
        assert statistics.wilcoxon(gains, side).p == pytest.approx(smallest_p(n, None, side))
    assert (smallest_p(3, 3, "better"), smallest_p(3, 3, "two-sided")) == (0.05, 0.1)


def test_many_arrangements_are_drawn_and_say_so() -> None:
    """Else a comparison of 20 runs an arm never ends, or calls itself exact."""
    rng = np.random.Generator(np.random.Philox(7))
    arm, baseline = rng.normal(0.8, 1, 20), rng.normal(0, 1, 20)
    found = statistics.permutation(arm, baseline, resampling=Resampling(20_000))
    assert (found.kind, found.exact) == ("20000 drawn", False)
    assert found.p == pytest.approx(statistics.t_test(arm, baseline).p, abs=0.01)
    flips = statistics.sign_flips(arm - baseline, resampling=Resampling(20_000))
    assert flips.kind == "20000 drawn"
    assert flips.p == pytest.approx(stats.ttest_rel(arm, baseline, alternative="greater").pvalue, abs=0.01)
    assert statistics.permutation(arm + 9, baseline, resampling=Resampling(500)).p == pytest.approx(1 / 501)


def test_ties_keep_rank_tests_exact_while_arrangements_are_few() -> None:
    """Else equal objectives, which heuristics often reach, turn small comparisons into rough approximations."""
    found = statistics.mann_whitney([1, 1, 2, 3], [0, 1, 0, 0])
    assert (found.kind, found.p) == ("exact", pytest.approx(3 / 70))
    assert statistics.wilcoxon([1, 1, 2, 0, -1]).p == pytest.approx(0.25)
    many = statistics.mann_whitney([1, 2] * 15, [1, 3] * 15)
    assert (many.kind, many.exact) == ("normal approximation", False)


@pytest.mark.parametrize(
    ("test", "groups", "why"),
    [
        (statistics.t_test, ([1.0], [2.0, 3.0]), "at least 2 repetitions"),
        (statistics.t_test, ([1.0, 1.0], [2.0, 2.0]), "no.* any spread|neither group"),
        (statistics.welch, ([1.0, 1.0], [1.0, 1.0]), "neither group"),
        (statistics.mann_whitney, ([1.0, 1.0], [1.0, 1.0]), "all values are equal"),
        (statistics.hedges_g, ([1.0, 1.0], [2.0, 2.0]), "neither group"),
        (statistics.wilcoxon, ([0.0, 0.0],), "all differences are zero"),
        (statistics.sign_flips, ([0.0, 0.0],), "all differences are zero"),
        (statistics.sign_flips, ([1.0],), "at least 2 pairs"),
        (statistics.cohen_dz, ([0.5, 0.5],), "all differences are equal"),
    ],
)
def test_what_cannot_be_tested_says_why(test: object, groups: tuple[Values, ...], why: str) -> None:
    """Else a NaN stands in the table and nobody knows what it means."""
    with pytest.raises(Undefined, match=why):
        test(*groups)  # type: ignore[operator]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_monotone_and_never_below_the_raw_p(raw: Values) -> None:
    """Else the correction makes a result look better, or turns the order of two around."""
    adjusted = holm(raw)
    assert all(before <= after <= 1 for before, after in zip(raw, adjusted, strict=True))
    by_raw = [adjusted[place] for place in sorted(range(len(raw)), key=raw.__getitem__)]
    assert by_raw == sorted(by_raw)
    assert adjusted[int(np.argmin(raw))] == pytest.approx(min(1.0, len(raw) * min(raw)))


def test_holm_of_a_known_table() -> None:
    """Else the step-down is off by one: values from Holm's procedure by hand."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_effects_are_those_of_the_textbook() -> None:
    """Else an effect cannot be compared with what others report."""
    arm, baseline = np.array([5.0, 6.0, 7.0]), np.array([3.0, 4.0, 5.0])
    assert statistics.hedges_g(arm, baseline) == pytest.approx(2.0 * 0.797884, rel=1e-5)  # J of 4 degrees of freedom
    assert statistics.cohen_dz([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert statistics.hedges_g(baseline, arm) == -statistics.hedges_g(arm, baseline)
