"""What runs have in them to be drawn: the best so far, shares of candidates, updates, outcomes, what was spent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.experiments.flops import ledger_flops
from eoh_esopt.experiments.run_record import Batch, RunRecord
from eoh_esopt.reports.objective import Scale
from eoh_esopt.reports.page.data import Arm
from operators.records import Skip, Status, Update

GIVEN = ("seed", "given")
"""What stands in the log in place of an operator where nobody wrote the candidates."""

SECONDS = "seconds: "
"""Before the names of what took time."""

FLOPS = "model FLOPs (2 P L)"
"""Of P weights and L tokens."""


@dataclass(frozen=True)
class Band:
    """A mean over runs and its spread.

    Attributes:
        x: where.
        middle: mean; NaN where a run has no value.
        low: least value.
        high: largest value.
    """

    x: NDArray[np.float64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One update or skip, over the runs of an arm.

    Attributes:
        step: its number.
        sigma: size of the perturbations, the mean over runs; None where every run skipped.
        rewards: of all directions of all runs that applied it.
        skips: runs that skipped it.
    """

    step: int
    sigma: float | None
    rewards: tuple[float, ...]
    skips: int


def best_so_far(run: RunRecord) -> NDArray[np.float64]:
    """Best objective after 0, 1, 2, ... candidates of the search, as people read it; NaN before the first valid one."""
    start: list[float | None] = []
    search: list[float | None] = []
    for batch in run.batches:
        (start if batch.generation < 0 else search).extend(batch.objectives)
    known = [value for value in start if value is not None]
    values = [min(known, default=np.nan), *(np.nan if value is None else value for value in search)]
    return natural(run.scale, np.fmin.accumulate(np.array(values, dtype=np.float64)))


def natural(scale: Scale, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Objectives of a search as people read them."""
    return -values if scale.maximise else values


def band(series: Sequence[NDArray[np.float64]]) -> Band:
    """Mean and range of series; where one of them is NaN or has ended, so have both."""
    stacked = np.full((len(series), max(map(len, series))), np.nan)
    for row, values in zip(stacked, series, strict=True):
        row[: len(values)] = values
    return Band(
        np.arange(stacked.shape[1], dtype=np.float64), stacked.mean(axis=0), stacked.min(axis=0), stacked.max(axis=0)
    )


def shares(run: RunRecord) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of valid and of new candidates in each generation of the search."""
    counts: dict[int, list[tuple[bool, bool]]] = defaultdict(list)
    for batch in run.batches:
        if batch.generation >= 0:
            counts[batch.generation] += zip(batch.valid, batch.new, strict=True)
    means = np.array([np.mean(counts[generation], axis=0) for generation in sorted(counts)]).reshape(-1, 2)
    return means[:, 0], means[:, 1]


def steps(arm: Arm) -> tuple[Step, ...]:
    """Updates and skips of all runs of an arm, by their number."""
    decisions: dict[int, list[Update | Skip]] = defaultdict(list)
    for run in arm.runs:
        for batch in run.batches:
            if batch.decision is not None:
                decisions[batch.decision.step].append(batch.decision)
    return tuple(_step(number, decisions[number]) for number in sorted(decisions))


def _step(number: int, made: Sequence[Update | Skip]) -> Step:
    updates = [one for one in made if isinstance(one, Update)]
    sigma = float(np.mean([one.sigma for one in updates])) if updates else None
    rewards = tuple(reward for one in updates for reward in one.rewards)
    return Step(number, sigma, rewards, len(made) - len(updates))


def spent(run: RunRecord) -> dict[str, float]:
    """What the run spent, by name: the counters of its ledger, FLOPs, and where its time went.

    What is not known of a run is left out: seconds that its log does not have, FLOPs of a model of unknown size.
    """
    counters: dict[str, float] = {}
    for name, value in run.ledger.as_dict().items():
        label = name.replace("_", " ")
        counters.update(
            {f"{label}: {key}": one for key, one in value.items()} if isinstance(value, Mapping) else {label: value}
        )
    flops = ledger_flops(run.ledger, run.facts["model"].get("parameters"))
    if flops is not None:
        counters[FLOPS] = flops.forward
    seconds = {} if run.timings is None else run.timings.as_dict()
    counters |= {f"{SECONDS}{name.replace('_', ' ')}": one for name, one in seconds.items() if one is not None}
    return counters | {"seconds in all": run.batches[-1].seconds if run.batches else 0.0}


def outcomes(runs: Iterable[RunRecord]) -> dict[str, Counter[str]]:
    """What became of the candidates that the model wrote: counts by operator, then by kind."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for batch in run.batches:
            if batch.operator not in GIVEN:
                counts[batch.operator].update(_kinds(batch))
    return dict(sorted(counts.items()))


def _kinds(batch: Batch) -> Iterable[str]:
    for status, original in zip(batch.statuses, batch.duplicate_of, strict=True):
        if status == Status.OK.value:
            yield "new" if original is None else "duplicate"
        else:
            yield status.replace("_", " ")
