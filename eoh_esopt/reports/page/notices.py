"""What a reader has to know before reading a task's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page.data import Arm, TaskRuns
from eoh_esopt.reports.page.series import best_so_far

_TOLERANCE = 0.01
"""Budgets that differ by more than this share are called unequal."""


def notices(task: TaskRuns) -> tuple[str, ...]:
    """Sentences, the gravest first."""
    return (*_budgets(task), *(sentence for arm in task.arms for sentence in _of_arm(arm)), *_weights(task))


def _budgets(task: TaskRuns) -> Iterator[str]:
    spent = {arm.label: [run.ledger.candidates for run in arm.finished] for arm in task.arms if arm.finished}
    means = {label: sum(counts) / len(counts) for label, counts in spent.items()}
    if means and max(means.values()) > (1 + _TOLERANCE) * min(means.values()):
        each = ", ".join(f"{label} {mean:g}" for label, mean in means.items())
        yield f"Unequal budgets: the arms spent different numbers of candidates a run ({each})."


def _of_arm(arm: Arm) -> Iterator[str]:
    if arm.unfinished:
        seeds = ", ".join(str(run.config.seed) for run in arm.unfinished)
        yield f"{arm.label}: unfinished runs (seed {seeds}) are drawn by themselves and are in no mean."
    if len(arm.runs) == 1:
        yield f"{arm.label}: one run says nothing about the spread between runs."
    for seed, count in sorted(Counter(run.config.seed for run in arm.runs).items()):
        if count > 1:
            yield f"{arm.label}: {count} runs have seed {seed}; they are no independent repetitions."
    stuck = [run for run in arm.finished if _is_stuck(run)]
    if stuck:
        whose = "the run" if len(arm.finished) == 1 else f"{len(stuck)} of {len(arm.finished)} finished runs"
        new = sum(run.ledger.new for run in stuck)
        yield f"{arm.label}: {whose} found nothing better than what it began with (valid new candidates: {new})."
    if any(run.best is None for run in arm.runs):
        yield f"{arm.label}: runs without any valid heuristic have no value and are in no mean."


def _is_stuck(run: RunRecord) -> bool:
    """Whether the search found nothing better than the start population."""
    values = best_so_far(run)
    return bool(values[0] == values[-1])


def _weights(task: TaskRuns) -> Iterator[str]:
    by_model = {(run.config.model, run.facts["base_checksum"]) for run in task.runs}
    names = Counter(model for model, _ in by_model)
    for name, count in sorted(names.items()):
        if count > 1:
            yield f"Runs with the model {name} began with {count} different sets of weights (see the checksums)."
