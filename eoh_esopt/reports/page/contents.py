"""The tables of one task."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page.data import Arm, TaskRuns, is_finished, settings_of, shown
from eoh_esopt.reports.page.series import FLOPS, SECONDS, band, best_so_far, outcomes, shares, spent, steps
from eoh_esopt.reports.page.style import FILLS
from eoh_esopt.reports.page.tables import Cell, Column, Table, columns
from problems.references import gap

_VALUE = ".4f"
_SHARE = ".1%"


def results(task: TaskRuns) -> Table:
    """Every arm, then what is known of the instances, best first."""
    heads = columns(
        "arm or known value",
        runs="d",
        best=_VALUE,
        mean=_VALUE,
        sd=_VALUE,
        median=_VALUE,
        gap_of_mean=_SHARE,
        gap_of_best=_SHARE,
    )
    known = sorted(task.scale.references.items(), key=lambda one: one[1], reverse=task.scale.maximise)
    rows = [_result(task, arm) for arm in task.arms]
    rows += [(name, None, value, None, None, None, None, _gap(task, value)) for name, value in known]
    ceiling = f"; gaps are to the {task.scale.ceiling}" if task.scale.ceiling else ""
    title = f"{task.scale.title}{ceiling}. Mean, sd (of the sample) and median are over finished runs"
    return Table(f"{task.key}-results", title, heads, tuple(rows))


def _result(task: TaskRuns, arm: Arm) -> tuple[Cell, ...]:
    values = _bests(task, arm.finished)
    if not arm.finished:
        best = _best(task, _bests(task, arm.runs))
        return (f"{arm.label} (unfinished)", len(arm.runs), best, None, None, None, None, _gap(task, best))
    mean = math.fsum(values) / len(values) if values else None
    spread = statistics.stdev(values) if len(values) > 1 else None
    middle = statistics.median(values) if values else None
    best = _best(task, values)
    return (arm.label, len(arm.finished), best, mean, spread, middle, _gap(task, mean), _gap(task, best))


def _bests(task: TaskRuns, runs: Sequence[RunRecord]) -> list[float]:
    return [task.scale.natural(run.best) for run in runs if run.best is not None]


def _best(task: TaskRuns, values: Sequence[float]) -> float | None:
    return (max if task.scale.maximise else min)(values, default=None)


def _gap(task: TaskRuns, value: float | None) -> float | None:
    ceiling = task.scale.references[task.scale.ceiling] if task.scale.ceiling else 0.0
    return gap(value, ceiling, task.scale.maximise) if value is not None and ceiling else None


def runs(task: TaskRuns) -> Table:
    """Every run."""
    heads = (
        *columns("arm", seed="d"),
        *columns("state", candidates="d", best=_VALUE, gap=_SHARE, valid=_SHARE, new=_SHARE, updates="d", skips="d"),
        *columns(minutes=".1f"),
        Column("folder"),
    )
    rows = tuple(_run(task, arm, run) for arm in task.arms for run in arm.runs)
    return Table(f"{task.key}-runs", f"Runs of {task.name}", heads, rows)


def _run(task: TaskRuns, arm: Arm, run: RunRecord) -> tuple[Cell, ...]:
    ledger, best = run.ledger, None if run.best is None else task.scale.natural(run.best)
    written = max(ledger.candidates, 1)
    state = "finished" if is_finished(run) else f"unfinished: {ledger.candidates} of {run.config.budget}"
    counts = (ledger.valid / written, ledger.new / written, ledger.updates, ledger.skips)
    seconds = run.batches[-1].seconds if run.batches else 0.0
    return (
        arm.label,
        run.config.seed,
        state,
        ledger.candidates,
        best,
        _gap(task, best),
        *counts,
        seconds / 60,
        run.folder.name,
    )


def curves(task: TaskRuns) -> Table:
    """The best so far: mean and range of the finished runs of each arm, where they change."""
    rows: list[tuple[Cell, ...]] = []
    for arm in task.arms:
        if not arm.finished:
            continue
        found = band([best_so_far(run) for run in arm.finished])
        stacked = np.stack([found.middle, found.low, found.high])
        rows += [(arm.label, len(arm.finished), int(at), *map(_known, stacked[:, at])) for at in changes(stacked)]
    heads = columns("arm", runs="d", candidates="d", mean=_VALUE, least=_VALUE, largest=_VALUE)
    return Table(
        f"{task.key}-best-so-far",
        f"Best so far, mean and range of the finished runs: {task.scale.title}",
        heads,
        tuple(rows),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def changes(stacked: NDArray[np.float64]) -> list[int]:
    """The columns that differ from those before them, and the last."""
    steps = ~np.isclose(stacked[:, 1:], stacked[:, :-1], rtol=0, atol=0, equal_nan=True).all(axis=0)
    return sorted({0, *(np.flatnonzero(steps) + 1).tolist(), stacked.shape[1] - 1})


def generations(task: TaskRuns) -> Table:
    """Shares of valid and new candidates of each run and generation."""
    rows = tuple(
        (arm.label, run.config.seed, number, float(valid), float(new))
        for arm in task.arms
        for run in arm.runs
        for number, (valid, new) in enumerate(zip(*shares(run), strict=True), 1)
    )
    heads = columns("arm", seed="d", generation="d", valid=_SHARE, new=_SHARE)
    return Table(f"{task.key}-generations", "Valid and new candidates by generation", heads, rows)


def updates(task: TaskRuns) -> Table:
    """Each update, over the runs of an arm."""
    heads = columns("arm", update="d", sigma=".3g", reward=".3f", sd=".3f", directions="d", runs_that_skipped="d")
    rows: list[tuple[Cell, ...]] = []
    for arm in task.arms:
        for one in steps(arm):
            mean = float(np.mean(one.rewards)) if one.rewards else None
            spread = float(np.std(one.rewards)) if one.rewards else None
            rows.append((arm.label, one.step + 1, one.sigma, mean, spread, len(one.rewards), one.skips))
    return Table(f"{task.key}-updates", "Updates: rewards over all directions of all runs", heads, tuple(rows))


def failures(task: TaskRuns) -> Table:
    """What became of the candidates, by arm and operator."""
    counted = {arm.label: outcomes(arm.runs) for arm in task.arms}
    there = {kind for rows in counted.values() for counts in rows.values() for kind in counts}
    kinds = [kind for kind in FILLS if kind in there] + sorted(there - FILLS.keys())
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, operator, sum(counts.values()), *(counts[kind] for kind in kinds))
        for label, by_operator in counted.items()
        for operator, counts in by_operator.items()
    )
    heads = (*columns("arm", "operator", written="d"), *(Column(kind, "d") for kind in kinds))
    return Table(f"{task.key}-outcomes", "What became of the candidates", heads, rows)


def ledger(task: TaskRuns) -> Table:
    """All counters, summed over the runs of each arm."""
    totals = [_total(arm) for arm in task.arms]
    names = list(dict.fromkeys(name for total in totals for name in total))
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *(total.get(name) for total in totals)) for name in names)
    heads = (Column("spent"), *(Column(_with_runs(arm), ",.10g") for arm in task.arms))
    return Table(f"{task.key}-ledger", "What was spent, summed over the runs of an arm", heads, rows)


def _total(arm: Arm) -> dict[str, float]:
    """Sums over the runs. A reason that a run does not name was none of its; what else it does not name is unknown."""
    found = [spent(run) for run in arm.runs]
    names = dict.fromkeys(name for one in found for name in one)
    partly = [name for name in names if name == FLOPS or name.startswith(SECONDS)]
    known = [name for name in names if name not in partly or all(name in one for one in found)]
    return {name: round(sum(one.get(name, 0) for one in found), 1) for name in known}


def _with_runs(arm: Arm) -> str:
    count = len(arm.runs)
    left = f", {len(arm.unfinished)} unfinished" if arm.unfinished else ""
    return f"{arm.label} ({count} run{'s' if count > 1 else ''}{left})"


def differing(task: TaskRuns) -> Table | None:
    """The settings that tell the arms apart, empty where an arm has no use for one; None for a single arm."""
    names = sorted({name for arm in task.arms for name in arm.settings})
    if not names:
        return None
    rows = tuple((name.replace("_", " "), *(_setting(arm, name) for arm in task.arms)) for name in names)
    heads = columns("setting", *(arm.label for arm in task.arms))
    return Table(f"{task.key}-arms", "Settings that differ between the arms", heads, rows)


def _setting(arm: Arm, name: str) -> str:
    return shown(arm.settings[name]) if name in arm.settings else ""


def shared(task: TaskRuns) -> Table:
    """The settings that all runs of the task have in common."""
    rows = tuple((name.replace("_", " "), value) for name, value in _common(task))
    return Table(f"{task.key}-settings", "Settings that all runs share", columns("setting", "value"), rows)


def _common(task: TaskRuns) -> Iterator[tuple[str, str]]:
    settings = [settings_of(run) for run in task.runs]
    for name, value in settings[0].items():
        if all(one.get(name) == value for one in settings):
            yield name, shown(value)
