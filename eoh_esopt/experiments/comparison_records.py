"""What a comparison of runs says: plain frozen records that `dataclasses.asdict` turns into JSON.

Values are natural, as people read them (a knapsack's value, not its negative), unless a field says otherwise. An
advantage is signed by the sense of the problem: positive where the arm is better than the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TRAINING = "training"
"""The objective that a search selects by, as the name of a table."""

TESTS = ("t-test", "Welch", "Mann-Whitney", "permutation", "Wilcoxon")
"""In this order. The t-test is the paper's; the permutation test is the one that assumes least."""


@dataclass(frozen=True)
class RunValue:
    """One run in an arm.

    Attributes:
        folder: where it lies.
        seed: of all its random streams.
        value: of its best heuristic; None where that failed on the held-out instances.
        from_start: whether the search beat nothing that it began with: seed heuristics and start population.
    """

    folder: str
    seed: int
    value: float | None
    from_start: bool


@dataclass(frozen=True)
class Arm:
    """The runs of one cell that differ in nothing but the seed.

    Attributes:
        name: method and the settings that tell it from other arms, such as "eoh" or "esopt-eoh shuffled".
        runs: by seed.
        mean: over its runs; None, with what follows, where a run has no value.
        sd: standard deviation of the sample (ddof 1); None for a single run.
        best: of its runs.
        median: of its runs.
        gap: of the mean to the ceiling, as a fraction of the ceiling; None where no ceiling is known.
        spent: counters of the ledger, mean over its runs; "tokens" are those read and written together.
    """

    name: str
    runs: tuple[RunValue, ...]
    mean: float | None
    sd: float | None
    best: float | None
    median: float | None
    gap: float | None
    spent: Mapping[str, float]


@dataclass(frozen=True)
class TestResult:
    """One test of an arm against the baseline.

    Attributes:
        name: of the test, one of `TESTS`.
        kind: how p was obtained: "exact", "equal variances", "9999 drawn", ...; empty where there is none.
        p: None where it cannot be computed; `reason` says why then.
        holm: p after Holm's correction over all contrasts of the table; None as p.
        smallest: the least p that an exact test can reach with so many repetitions; None for other tests.
        reason: why there is no p; empty where there is one.
    """

    __test__ = False  # pytest takes the name for a class of tests

    name: str
    kind: str
    p: float | None
    holm: float | None
    smallest: float | None
    reason: str


@dataclass(frozen=True)
class Wins:
    """How often the arm was better, equal, worse, and by how much.

    Attributes:
        of: what was counted: "pairs of one seed" or "all pairs of runs", or "rows" for a whole table.
        wins: how often it was better.
        ties: how often equal (to a relative 1e-9).
        losses: how often worse.
        mean_win: mean advantage of the wins, positive; None where there is none.
        mean_loss: mean advantage of the losses, negative; None where there is none.
        unit: of the two means: "value", or "fraction of the baseline" for a whole table.
    """

    of: str
    wins: int
    ties: int
    losses: int
    mean_win: float | None
    mean_loss: float | None
    unit: str


@dataclass(frozen=True)
class Contrast:
    """An arm against the baseline of its cell.

    Attributes:
        arm: name of the arm.
        baseline: name of the baseline.
        paired: whether runs are compared seed by seed.
        difference: mean of the arm minus mean of the baseline, in natural values.
        advantage: the same, positive where the arm is better.
        words: "better", "worse" or "equal".
        interval: of the difference, by the bootstrap; None where there is none.
        bootstrap: which one: "BCa of the paired differences", ...; empty where there is none.
        effect: the advantage in standard deviations; None where there is no spread.
        effect_name: "Cohen's d_z" for pairs, else "Hedges' g".
        tests: those of `TESTS`, Wilcoxon's for pairs only; the permutation test flips signs for pairs.
        wins: seed by seed, or over all pairs of runs where they are not paired.
        repetitions_needed: a group, to see the observed effect with the comparison's power; None where it is no
            advantage or more than anybody could make.
        visible_effect: the least effect that so many repetitions show with the comparison's power; None for one run.
        notes: what a reader has to know of it.
    """

    arm: str
    baseline: str
    paired: bool
    difference: float
    advantage: float
    words: str
    interval: tuple[float, float] | None
    bootstrap: str
    effect: float | None
    effect_name: str
    tests: tuple[TestResult, ...]
    wins: Wins
    repetitions_needed: int | None
    visible_effect: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One task at one budget.

    Attributes:
        problem: name of the task.
        set_name: "training", or the held-out set, such as "test50".
        measure: what the values are.
        maximise: whether larger is better.
        ceiling: name of the value that nothing is known to beat, None where there is none.
        ceiling_value: that value.
        budget: what was spent of the named budget, mean over the arms.
        unequal: whether the arms spent more than 1 % different amounts of it, and the comparison was forced.
        arms: the baseline first.
        contrasts: one for each other arm that has a mean; none where the baseline is not there or has none.
        notes: what a reader has to know of it.
    """

    problem: str
    set_name: str
    measure: str
    maximise: bool
    ceiling: str | None
    ceiling_value: float | None
    budget: float
    unequal: bool
    arms: tuple[Arm, ...]
    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The cells of one objective; Holm's correction is made across it.

    Attributes:
        objective: "training", which the search selected by, or a held-out set's name.
        cells: by task and budget.
        records: by arm: cells won, tied and lost against the baseline, with their sizes.
    """

    objective: str
    cells: tuple[Cell, ...]
    records: Mapping[str, Wins]


@dataclass(frozen=True)
class Comparison:
    """What runs say when they are put side by side.

    Attributes:
        baseline: name of the arm that the others are held against.
        budget_of: the counter that has to be equal: candidates, model_calls, evaluations or tokens.
        alternative: "better" (one-sided: the arm is better than the baseline) or "two-sided".
        confidence: of the intervals.
        power: of the repetitions that are said to be needed, at a level of 0.05.
        resamples: of the bootstrap, and of permutations where they are too many to go through.
        seed: of the resampling.
        tables: the training table first.
        notes: what concerns all of it.
    """

    baseline: str
    budget_of: str
    alternative: str
    confidence: float
    power: float
    resamples: int
    seed: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
