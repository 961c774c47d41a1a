"""Whether runs may be compared at all: the same model, and for one task the same instances and the same start."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from eoh_esopt.experiments.run_record import RunRecord
from operators.errors import UserError

_SAME = 1e-9
"""Relative difference of objectives that other processors may cause."""

_WEIGHT_SETTINGS = ("scope", "restore", "dtype", "backend", "noise")
"""What decides in which form the weights are hashed."""


def check_runs(runs: Sequence[RunRecord]) -> None:
    """See whether runs can stand in one comparison.

    Raises:
        UserError: there are none; one is given twice, is not finished or has no valid candidate; or two differ in
            their model, or on the same task in their instances or in what they started from.
    """
    if not runs:
        raise UserError("There are no runs to compare. Give folders of runs.")
    _check_folders(runs)
    for run in runs:
        _check_value(run)
    _check_model(runs)
    tasks: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        tasks[run.config.problem].append(run)
    for mine in tasks.values():
        for run in mine[1:]:
            _check_instances(mine[0], run)
            _check_start(mine[0], run)


def unverified(runs: Sequence[RunRecord]) -> list[str]:
    """What could not be seen: whether weights are the same where they were hashed in different forms."""
    if len({_base(run) for run in runs}) <= 1:
        return []
    return [
        f"The runs' models are the same by name ({_model(runs[0])}), but their weights were hashed in different forms "
        f"({', '.join(_WEIGHT_SETTINGS[:-1])} differ), so that their checksums could not be compared."
    ]


def _check_folders(runs: Sequence[RunRecord]) -> None:
    seen = set()
    for run in runs:
        folder = run.folder.resolve()
        if folder in seen:
            raise UserError(f"The run in {run.folder} is given twice. Give each run once.")
        seen.add(folder)


def _check_value(run: RunRecord) -> None:
    if run.summary is None:
        raise UserError(f"The run in {run.folder} is not finished. Go on with: eoh-esopt run --resume {run.folder}")
    if run.best is None:
        raise UserError(
            f"The run in {run.folder} has no valid candidate, so it has no value to compare. "
            "Leave it out, and say so where you show the comparison."
        )
    if not math.isfinite(run.best):
        raise UserError(
            f"The best objective of the run in {run.folder} is {run.best}, which is no number to compare. "
            "Mend the score of its problem and run it again."
        )


def _check_model(runs: Sequence[RunRecord]) -> None:
    """Weights are compared by their hash where they were hashed in the same form, else by name."""
    first = runs[0]
    by_form: dict[tuple[object, ...], RunRecord] = {}
    for run in runs:
        same_form = by_form.setdefault(tuple(getattr(run.config, name) for name in _WEIGHT_SETTINGS), run)
        if _base(run) != _base(same_form):
            raise UserError(
                f"{same_form.folder} and {run.folder} began with different weights: {_model(same_form)} with checksum "
                f"{_base(same_form)[:12]}, {_model(run)} with {_base(run)[:12]}. Compare runs of the same model."
            )
        if _base(run) != _base(first) and _model(run) != _model(first):
            raise UserError(
                f"{first.folder} and {run.folder} have different models: {_model(first)} and {_model(run)}. "
                "Compare runs of the same model."
            )


def _base(run: RunRecord) -> str:
    return str(run.facts["base_checksum"])


def _model(run: RunRecord) -> str:
    return str(run.facts["model"].get("model", run.config.model))


def _check_instances(first: RunRecord, run: RunRecord) -> None:
    same = (
        first.scale.maximise == run.scale.maximise
        and first.scale.measure == run.scale.measure
        and _same_values(first.scale.references, run.scale.references)
        and _same_objectives(_objectives(first, "seed"), _objectives(run, "seed"))
    )
    if not same:
        data = [one.config.data or "drawn from their seeds" for one in (first, run)]
        raise UserError(
            f"{first.folder} and {run.folder} were scored on different instances of {run.config.problem} (data: "
            f"{data[0]}; {data[1]}): known values or seed heuristics differ. Compare runs on the same instances."
        )


def _check_start(first: RunRecord, run: RunRecord) -> None:
    if not _same_objectives(_objectives(first, "given"), _objectives(run, "given")):
        starts = [one.config.init_from or "the model's own programs" for one in (first, run)]
        raise UserError(
            f"{first.folder} and {run.folder} differ in init_from: they started from {starts[0]} and {starts[1]}. "
            "Compare runs with the same start."
        )


def _objectives(run: RunRecord, operator: str) -> list[float | None]:
    """Of the programs that were there before the search."""
    return [value for batch in run.batches if batch.operator == operator for value in batch.objectives]


def _same_values(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    return first.keys() == second.keys() and _same_objectives([*first.values()], [second[name] for name in first])


def _same_objectives(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    return len(first) == len(second) and all(
        one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=_SAME))
        for one, other in zip(first, second, strict=True)
    )
