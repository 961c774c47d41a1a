"""One arm against the baseline: difference, interval, tests, wins, and what more repetitions would show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.experiments import statistics
from eoh_esopt.experiments.comparison_records import Contrast, TestResult, Wins
from eoh_esopt.experiments.power import LEVEL, repetitions_needed, visible_effect
from eoh_esopt.experiments.resampling import Resampling, paired_interval, unpaired_interval
from eoh_esopt.experiments.statistics import Alternative, PValue, Undefined, smallest_p, without_rounding

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """How arms are compared, see `comparison_records.Comparison`."""

    alternative: Alternative = "better"
    confidence: float = 0.95
    power: float = 0.8
    resampling: Resampling = field(default_factory=Resampling)


@dataclass(frozen=True)
class Sample:
    """An arm's values, as natural ones; `maximise` tells the sense.

    Attributes:
        name: of the arm.
        by_seed: value of each run.
    """

    name: str
    by_seed: Mapping[int, float]


def contrast(arm: Sample, baseline: Sample, maximise: bool, method: Method) -> Contrast:
    """Hold an arm against the baseline: seed by seed where both have the same seeds."""
    sign = 1.0 if maximise else -1.0  # of what larger is better
    paired = arm.by_seed.keys() == baseline.by_seed.keys()
    seeds = sorted(arm.by_seed)
    first = sign * np.array([arm.by_seed[seed] for seed in seeds])
    second = sign * np.array([baseline.by_seed[seed] for seed in (seeds if paired else sorted(baseline.by_seed))])
    size = float(np.abs(np.concatenate([first, second])).max())
    first, second = without_rounding(first, size), without_rounding(second, size)
    gains = without_rounding(first - second, size) if paired else None
    means = np.array([math.fsum(first) / len(first) - math.fsum(second) / len(second)])
    advantage = float(without_rounding(means, size)[0])
    effect, missing = _effect(first, second, gains)
    interval, bootstrap = _interval(first, second, gains, sign, method)
    tests = _tests(first, second, gains, method)
    least = min(len(first), len(second))
    return Contrast(
        arm=arm.name,
        baseline=baseline.name,
        paired=paired,
        difference=sign * advantage,
        advantage=advantage,
        words="better" if advantage > 0 else "worse" if advantage < 0 else "equal",
        interval=interval,
        bootstrap=bootstrap,
        effect=effect,
        effect_name="Cohen's d_z" if paired else "Hedges' g",
        tests=tests,
        wins=_wins(first, second, gains, size),
        repetitions_needed=None
        if effect is None
        else repetitions_needed(effect, paired=paired, wanted=method.power, alternative=method.alternative),
        visible_effect=visible_effect(least, paired=paired, wanted=method.power, alternative=method.alternative),
        notes=tuple(_notes(arm, baseline, paired, missing, tests)),
    )


def corrected(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The contrasts of a table with Holm's correction, made for each test by itself.

    A contrast whose test has no p counts as one of p = 1: that it was looked at does not depend on what came out.
    """
    adjusted: list[dict[str, float]] = [{} for _ in contrasts]
    for name in {test.name for one in contrasts for test in one.tests}:
        found = [
            (place, 1.0 if test.p is None else test.p)
            for place, one in enumerate(contrasts)
            for test in one.tests
            if test.name == name
        ]
        for (place, _), p in zip(found, statistics.holm([p for _, p in found]), strict=True):
            adjusted[place][name] = p
    return [
        replace(
            one, tests=tuple(test if test.p is None else replace(test, holm=holms[test.name]) for test in one.tests)
        )
        for one, holms in zip(contrasts, adjusted, strict=True)
    ]


def tally(advantages: Sequence[float], of: str, unit: str) -> Wins:
    """How many advantages are positive, zero, negative, and how large."""
    wins = [one for one in advantages if one > 0]
    losses = [one for one in advantages if one < 0]
    return Wins(
        of=of,
        wins=len(wins),
        ties=len(advantages) - len(wins) - len(losses),
        losses=len(losses),
        mean_win=math.fsum(wins) / len(wins) if wins else None,
        mean_loss=math.fsum(losses) / len(losses) if losses else None,
        unit=unit,
    )


def _effect(first: Values, second: Values, gains: Values | None) -> tuple[float | None, str]:
    """The effect, or why there is none."""
    try:
        return (statistics.hedges_g(first, second) if gains is None else statistics.cohen_dz(gains)), ""
    except Undefined as error:
        return None, str(error)


def _interval(
    first: Values, second: Values, gains: Values | None, sign: float, method: Method
) -> tuple[tuple[float, float] | None, str]:
    """The interval of the difference in natural values, and which bootstrap it is from."""
    if min(len(first), len(second)) < 2:
        return None, ""
    if gains is not None:
        found = paired_interval(gains, method.confidence, method.resampling)
    else:
        found = unpaired_interval(first, second, method.confidence, method.resampling)
    low, high = sorted((sign * found.low, sign * found.high))
    what = "of the two groups" if gains is None else "of the paired differences"
    return (low, high), f"{found.kind} {what}"


def _tests(first: Values, second: Values, gains: Values | None, method: Method) -> tuple[TestResult, ...]:
    side, resampling = method.alternative, method.resampling
    tests = [
        _test("t-test", lambda: statistics.t_test(first, second, side), None),
        _test("Welch", lambda: statistics.welch(first, second, side), None),
    ]
    least = smallest_p(len(first), len(second), side)
    tests.append(_test("Mann-Whitney", lambda: statistics.mann_whitney(first, second, side), least))
    if gains is None:
        tests.append(_test("permutation", lambda: statistics.permutation(first, second, side, resampling), least))
        return tuple(tests)
    least = smallest_p(len(first), None, side)
    tests.append(_test("permutation", lambda: statistics.sign_flips(gains, side, resampling), least))
    tests.append(_test("Wilcoxon", lambda: statistics.wilcoxon(gains, side), least))
    return tuple(tests)


def _test(name: str, compute: Callable[[], PValue], smallest: float | None) -> TestResult:
    try:
        found = compute()
    except Undefined as error:
        return TestResult(name, "", None, None, smallest, str(error))
    return TestResult(name, found.kind, found.p, None, smallest, "")


def _wins(first: Values, second: Values, gains: Values | None, size: float) -> Wins:
    """Pair by pair; where runs are not paired, each run of the arm against each of the baseline."""
    if gains is not None:
        return tally(gains.tolist(), "pairs of one seed", "value")
    every = np.subtract.outer(first, second).ravel()
    return tally(without_rounding(every, size).tolist(), "all pairs of runs", "value")


def _notes(arm: Sample, baseline: Sample, paired: bool, missing: str, tests: Sequence[TestResult]) -> list[str]:
    notes = []
    least = min(len(arm.by_seed), len(baseline.by_seed))
    if least == 1:
        notes.append(f"{arm.name}: one repetition allows no test and no interval; run more seeds.")
    elif missing:
        notes.append(f"{arm.name}: {missing}, so there is no effect size.")
    if not paired:
        notes.append(f"{arm.name}: not paired, because the seeds differ: {_seeds(arm)}; {_seeds(baseline)}.")
    [smallest] = [test.smallest for test in tests if test.name == "permutation"]
    if least > 1 and smallest is not None and smallest >= LEVEL:
        notes.append(
            f"{arm.name}: {least} repetitions cannot show a difference: no exact test gives a p below {smallest:.3g}."
        )
    return notes


def _seeds(sample: Sample) -> str:
    return f"{sample.name} has {', '.join(map(str, sorted(sample.by_seed)))}"
