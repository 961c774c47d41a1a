"""Runs put side by side: what may be compared, how the arms do, and whether a difference is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import get_args

from eoh_esopt.experiments.comparable import unverified
from eoh_esopt.experiments.comparison_records import TRAINING, Arm, Cell, Comparison, Contrast, RunValue, Table, Wins
from eoh_esopt.experiments.contrasts import Method, Sample, contrast, corrected, tally
from eoh_esopt.experiments.grouping import ArmRuns, RunCell, group_runs, spent
from eoh_esopt.experiments.held_out import HeldOut
from eoh_esopt.experiments.resampling import Resampling
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.experiments.statistics import EQUAL, Alternative, describe
from operators.errors import UserError
from problems.references import gap

_USUAL_BASELINES = ("eoh", "sample")


def compare_runs(
    runs: Sequence[RunRecord],
    *,
    held_out: Sequence[HeldOut] = (),
    missing: Sequence[str] = (),
    baseline: str | None = None,
    budget_of: str = "candidates",
    force: bool = False,
    alternative: Alternative = "better",
    confidence: float = 0.95,
    power: float = 0.8,
    resamples: int = 9_999,
    seed: int = 2024,
    workers: int = 1,
) -> Comparison:
    """Compare runs: by task and budget, each arm against the baseline, seed by seed where both have the same seeds.

    Args:
        runs: finished ones, in any order.
        held_out: what their best heuristics are worth on other instances, see `held_out.score_held_out`; each set of
            instances gets a table of its own.
        missing: what is to be said of runs that are not there, see `find_runs`; it stands among the notes.
        baseline: name of the arm that the others are held against; None for eoh, else sample, else the first arm.
        budget_of: the counter that has to be equal: candidates, model_calls, evaluations or tokens.
        force: whether arms of unequal budgets are compared all the same, and labelled so.
        alternative: "better" for one-sided tests, or "two-sided".
        confidence: of the intervals, in (0, 1).
        power: of the repetitions that are said to be needed, in (0, 1).
        resamples: draws of the bootstrap, and of permutations where there are too many to count; at least 100.
        seed: of the draws.
        workers: processes that draw; the numbers do not depend on it.

    Raises:
        UserError: runs may not be compared (see `group_runs`), there is no such baseline, or an argument is no good.
    """
    method = _method(alternative, confidence, power, resamples, seed, workers)
    cells = group_runs(runs, budget_of, force=force)
    chosen = _baseline(cells, baseline)
    tables = [_table(TRAINING, [_training(cell, chosen, budget_of, method) for cell in cells])]
    for name in sorted({one.set_name for one in held_out}):
        sets = {one.problem: one for one in held_out if one.set_name == name}
        mine = [cell for cell in cells if cell.problem in sets]
        tables.append(_table(name, [_cell(cell, sets[cell.problem], chosen, budget_of, method) for cell in mine]))
    return Comparison(
        baseline=chosen,
        budget_of=budget_of,
        alternative=alternative,
        confidence=confidence,
        power=power,
        resamples=resamples,
        seed=seed,
        tables=tuple(tables),
        notes=(*missing, *unverified(runs)),
    )


def _method(
    alternative: Alternative, confidence: float, power: float, resamples: int, seed: int, workers: int
) -> Method:
    if alternative not in get_args(Alternative):
        raise UserError(f"Unknown alternative {alternative!r}. Choose one of: {', '.join(get_args(Alternative))}.")
    for name, value in (("confidence", confidence), ("power", power)):
        if not 0 < value < 1:
            raise UserError(f"{name} must be above 0 and below 1, not {value}.")
    for name, number, least in (("resamples", resamples, 100), ("seed", seed, 0), ("workers", workers, 1)):
        if number < least:
            raise UserError(f"{name} must be at least {least}, not {number}.")
    return Method(alternative, confidence, power, Resampling(resamples, seed, workers))


def _baseline(cells: Sequence[RunCell], wanted: str | None) -> str:
    """The arm the others are held against: what was asked for, else a usual one, else the first."""
    names = [arm.name for cell in cells for arm in _ordered(cell.arms)]
    if wanted is None:
        return next((name for name in _USUAL_BASELINES if name in names), names[0])
    if wanted not in names:
        raise UserError(f"There is no arm {wanted!r} to be the baseline. Arms: {', '.join(dict.fromkeys(names))}.")
    return wanted


def _ordered(arms: Sequence[ArmRuns], baseline: str | None = None) -> list[ArmRuns]:
    """The baseline first, then those that do not learn, then by name."""
    return sorted(arms, key=lambda arm: (arm.name != baseline, arm.runs[0].config.learns, arm.name))


def _training(cell: RunCell, baseline: str, budget_of: str, method: Method) -> Cell:
    """One cell on the training instances: the objectives that the search selected by."""
    scale = cell.arms[0].runs[0].scale
    values = {run.folder: scale.natural(run.best) for arm in cell.arms for run in arm.runs if run.best is not None}
    ceiling = None if scale.ceiling is None else scale.references[scale.ceiling]
    bests = HeldOut(cell.problem, TRAINING, scale.measure, scale.maximise, scale.ceiling, ceiling, values, {})
    return _cell(cell, bests, baseline, budget_of, method)


def _cell(cell: RunCell, values: HeldOut, baseline: str, budget_of: str, method: Method) -> Cell:
    """One cell on one set of instances."""
    arms = [_arm(arm, values) for arm in _ordered(cell.arms, baseline)]
    contrasts, notes = _contrasts(arms, baseline, values.maximise, method)
    failed = [f"{folder}: {why}." for folder, why in values.failures.items() if _in_cell(cell, str(folder))]
    return Cell(
        problem=cell.problem,
        set_name=values.set_name,
        measure=values.measure,
        maximise=values.maximise,
        ceiling=values.ceiling,
        ceiling_value=values.ceiling_value,
        budget=fmean(arm.spent(budget_of) for arm in cell.arms),
        unequal=cell.unequal,
        arms=tuple(arms),
        contrasts=tuple(contrasts),
        notes=(*cell.notes, *notes, *failed, *_start_notes(arms)),
    )


def _in_cell(cell: RunCell, folder: str) -> bool:
    return any(str(run.folder) == folder for arm in cell.arms for run in arm.runs)


def _arm(arm: ArmRuns, values: HeldOut) -> Arm:
    runs = tuple(
        RunValue(str(run.folder), run.config.seed, values.values.get(run.folder), _from_start(run)) for run in arm.runs
    )
    known = [run.value for run in runs if run.value is not None]
    counters = [spent(run) for run in arm.runs]
    means = {name: fmean(one[name] for one in counters) for name in counters[0]}
    if len(known) < len(runs):
        return Arm(arm.name, runs, None, None, None, None, None, means)
    found = describe(known)
    ceiling = values.ceiling_value
    return Arm(
        name=arm.name,
        runs=runs,
        mean=found.mean,
        sd=found.sd,
        best=max(known) if values.maximise else min(known),
        median=found.median,
        gap=gap(found.mean, ceiling, values.maximise) if ceiling else None,
        spent=means,
    )


def _from_start(run: RunRecord) -> bool:
    """Whether the best heuristic is one that the search began with."""
    before = [batch.best for batch in run.batches if batch.generation < 0]
    return bool(before) and before[-1] == run.best


def _contrasts(arms: Sequence[Arm], baseline: str, maximise: bool, method: Method) -> tuple[list[Contrast], list[str]]:
    """Each arm against the baseline, and what stands in the way."""
    if len(arms) == 1:
        return [], [f"Only one arm here, {arms[0].name}: there is nothing to compare it with."]
    first = arms[0]
    if first.name != baseline:
        return [], [f"The baseline {baseline} has no runs here: values only."]
    notes = [f"{arm.name} has runs without a value: no test." for arm in arms if arm.mean is None]
    if first.mean is None:
        return [], notes
    others = [arm for arm in arms[1:] if arm.mean is not None]
    return [contrast(_sample(arm), _sample(first), maximise, method) for arm in others], notes


def _sample(arm: Arm) -> Sample:
    return Sample(arm.name, {run.seed: run.value for run in arm.runs if run.value is not None})


def _start_notes(arms: Sequence[Arm]) -> list[str]:
    counts = [(arm.name, sum(run.from_start for run in arm.runs), len(arm.runs)) for arm in arms]
    told = ", ".join(f"{name} {count} of {total}" for name, count, total in counts if count)
    return [f"Runs that found nothing better than what they began with: {told}."] if told else []


def _table(objective: str, cells: Sequence[Cell]) -> Table:
    """The cells with Holm's correction over all their contrasts, and how each arm does over all cells."""
    contrasts = iter(corrected([one for cell in cells for one in cell.contrasts]))
    cells = [replace(cell, contrasts=tuple(next(contrasts) for _ in cell.contrasts)) for cell in cells]
    return Table(objective, tuple(cells), _records(cells))


def _records(cells: Sequence[Cell]) -> Mapping[str, Wins]:
    """Cells won, tied and lost by each arm, with sizes as fractions of the baseline's mean."""
    shares: dict[str, list[float]] = {}
    for cell in cells:
        for one in cell.contrasts:
            base = cell.arms[0].mean
            assert base is not None
            share = one.advantage / abs(base) if base else one.advantage
            shares.setdefault(one.arm, []).append(0.0 if abs(share) <= EQUAL else share)
    return {name: tally(found, "rows", "fraction of the baseline") for name, found in shares.items()}
