"""What the comparison of the arms says, as tables; or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eoh_esopt.experiments.comparison import compare_runs
from eoh_esopt.experiments.comparison_records import Cell, Comparison, Contrast
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page import tables
from eoh_esopt.reports.page.data import TaskRuns, is_finished
from eoh_esopt.reports.page.tables import Table, columns
from operators.errors import UserError

_VALUE = ".4f"
_P = ".3g"

Labels = Mapping[str, str]
"""Labels of arms by the folders of their runs."""


@dataclass(frozen=True)
class Compared:
    """A comparison on the page.

    Attributes:
        tables: none where the runs cannot be compared.
        notices: what to know of it, or why there is none.
    """

    tables: tuple[Table, ...]
    notices: tuple[str, ...]


def compared(tasks: Sequence[TaskRuns]) -> Compared | None:
    """The comparison of all finished runs, so that p values are corrected across tasks; None without two arms."""
    if not any(sum(bool(arm.finished) for arm in task.arms) > 1 for task in tasks):
        return None
    runs: list[RunRecord] = [run for task in tasks for run in task.runs if is_finished(run)]
    try:
        found = compare_runs(runs)
    except UserError as error:
        return Compared((), (f"The runs are not compared: {error}",))
    labels = {str(run.folder): arm.label for task in tasks for arm in task.arms for run in arm.runs}
    tables = (_differences(found, labels), _tests(found, labels))
    return Compared(tables, tuple(dict.fromkeys(_notes(found))))


def _contrasts(found: Comparison, labels: Labels) -> Iterator[tuple[Cell, Contrast]]:
    """Each contrast with its cell; its arms under the labels that they have on the page."""
    for table in found.tables:
        for cell in table.cells:
            names = {arm.name: labels[arm.runs[0].folder] for arm in cell.arms}
            for one in cell.contrasts:
                yield cell, replace(one, arm=names[one.arm], baseline=names[one.baseline])


def _place(cell: Cell) -> str:
    unequal = ", UNEQUAL budgets" if cell.unequal else ""
    return f"{cell.problem}, {cell.set_name}, {cell.budget:g}{unequal}"


def _differences(found: Comparison, labels: Labels) -> Table:
    heads = (
        *columns("task, instances, budget", "arm", "baseline", "pairs"),
        *columns("result", difference=_VALUE, low=_VALUE, high=_VALUE, effect=".2f", wins="d", ties="d", losses="d"),
        *columns(runs_needed="d"),
    )
    rows: list[tuple[tables.Cell, ...]] = []
    for cell, one in _contrasts(found, labels):
        low, high = one.interval or (None, None)
        place = (_place(cell), one.arm, one.baseline, "by seed" if one.paired else "none")
        counts = (one.wins.wins, one.wins.ties, one.wins.losses, one.repetitions_needed)
        rows.append((*place, one.words, one.difference, low, high, one.effect, *counts))
    title = (
        f"Arm minus baseline; low and high: {found.confidence:.0%} bootstrap interval ({found.resamples} resamples, "
        f"seed {found.seed}); effect in standard deviations; runs needed in each arm to see it with power "
        f"{found.power:.0%}"
    )
    return Table("comparison", title, heads, tuple(rows))


def _tests(found: Comparison, labels: Labels) -> Table:
    heads = (
        *columns("task, instances, budget", "arm", "test", p=_P, p_after_Holm=_P, smallest_p_possible=_P),
        *columns("why there is no p"),
    )
    rows = tuple(
        (_place(cell), one.arm, test.name, test.p, test.holm, test.smallest, test.reason)
        for cell, one in _contrasts(found, labels)
        for test in one.tests
    )
    sided = "one-sided: the arm is better" if found.alternative == "better" else found.alternative
    return Table("comparison-tests", f"Tests of each arm against its baseline ({sided})", heads, rows)


def _notes(found: Comparison) -> Iterator[str]:
    yield from found.notes
    for table in found.tables:
        for cell in table.cells:
            contrasts = (note for one in cell.contrasts for note in one.notes)
            yield from (f"{cell.problem}: {note}" for note in (*cell.notes, *contrasts))
