"""From runs to the page, and to files of its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eoh_esopt.engine.events import write_atomically
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page import contents, reproduce, style
from eoh_esopt.reports.page.compared import Compared, compared
from eoh_esopt.reports.page.data import TaskRuns, group, is_finished
from eoh_esopt.reports.page.figures import Figure
from eoh_esopt.reports.page.heuristic import BestHeuristic, best_heuristic
from eoh_esopt.reports.page.notices import notices
from eoh_esopt.reports.page.panels import figures
from eoh_esopt.reports.page.tables import WRITERS, Table
from eoh_esopt.reports.page.text import plain

_TEMPLATE = "template.html.jinja"


@dataclass(frozen=True)
class Section:
    """One task on the page.

    Attributes:
        task: its runs.
        notices: what to know before reading the numbers.
        results: the table of results.
        figures: in order.
        best: the best heuristic; None where nothing was valid.
        ledger: what was spent.
        differing: settings that tell its arms apart; None for one arm.
        recipes: a command for each arm.
        details: further tables, folded up on the page.
    """

    task: TaskRuns
    notices: tuple[str, ...]
    results: Table
    figures: tuple[Figure, ...]
    best: BestHeuristic | None
    ledger: Table
    differing: Table | None
    recipes: tuple[reproduce.Recipe, ...]
    details: tuple[Table, ...]

    @property
    def about(self) -> str:
        """What was run, in a line."""
        configs = [run.config for run in self.task.runs]
        parts = {
            "model": [config.model for config in configs],
            "method": [config.method for config in configs],
            "candidates in a run": [str(config.budget) for config in configs],
            "seeds": [str(seed) for seed in sorted(config.seed for config in configs)],
        }
        return "; ".join(f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in parts.items())

    @property
    def tables(self) -> Iterator[Table]:
        """All its tables."""
        yield from (self.results, self.ledger, *self.details)
        best = (self.best.instances, self.best.held_out) if self.best else ()
        yield from (table for table in (self.differing, *best) if table is not None)


@dataclass(frozen=True)
class Report:
    """A whole report.

    Attributes:
        title: of the page.
        when: the days its runs began, from the runs.
        runs: all of them.
        sections: by task.
        comparison: of the arms; None where no task has two.
        making: tables on how to make the runs again.
    """

    title: str
    when: str
    runs: tuple[RunRecord, ...]
    sections: tuple[Section, ...]
    comparison: Compared | None
    making: tuple[Table, ...]

    @property
    def unfinished(self) -> int:
        """How many runs are not finished."""
        return sum(not is_finished(run) for run in self.runs)

    @property
    def tables(self) -> Iterator[Table]:
        """All its tables, each under a name of its own."""
        for section in self.sections:
            yield from section.tables
        yield from self.comparison.tables if self.comparison else ()
        yield from self.making

    @property
    def figures(self) -> Iterator[Figure]:
        """All its figures, each under a name of its own."""
        for section in self.sections:
            yield from section.figures


def build(runs: Sequence[RunRecord], follow: Callable[[str], None] = lambda what: None) -> Report:
    """Everything the page shows.

    Args:
        runs: at least one.
        follow: hears what is done next.
    """
    tasks = group(runs)
    sections = []
    for task in tasks:
        follow(f"drawing {task.name}")
        sections.append(_section(task))
    follow("comparing arms")
    comparison = compared(tasks)
    ordered = tuple(run for task in tasks for run in task.runs)
    title = "Heuristic search: " + ", ".join(task.name for task in tasks)
    making = (reproduce.models(ordered), reproduce.machines(ordered), reproduce.checksums(tasks))
    return Report(title, _when(ordered), ordered, tuple(sections), comparison, making)


def _section(task: TaskRuns) -> Section:
    details = (contents.runs, contents.failures, contents.updates, contents.generations, contents.curves)
    tables = [make(task) for make in details]
    return Section(
        task=task,
        notices=notices(task),
        results=contents.results(task),
        figures=figures(task),
        best=best_heuristic(task),
        ledger=contents.ledger(task),
        differing=contents.differing(task),
        recipes=tuple(reproduce.recipe(task, arm) for arm in task.arms),
        details=(*(table for table in tables if table.rows), contents.shared(task)),
    )


def _when(runs: Sequence[RunRecord]) -> str:
    """First and last day on which one of the runs began, in UTC: the page is the same whenever it is made."""
    days = sorted(str(run.facts["time"])[:10] for run in runs)
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def page(report: Report) -> str:
    """The page: one HTML file that loads nothing. Whatever models wrote is escaped."""
    environment = Environment(
        loader=PackageLoader("eoh_esopt.reports.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawings = {figure.name: Markup(figure.inline) for figure in report.figures}  # matplotlib escapes its text
    light, dark = Markup(style.variables(style.LIGHT)), Markup(style.variables(style.DARK))
    text = environment.get_template(_TEMPLATE).render(report=report, drawings=drawings, light=light, dark=dark)
    return plain(text)


def write_tables(report: Report, folder: Path) -> int:
    """Write each table as .md, .csv and .json.

    Returns:
        The number of tables.

    Raises:
        UserError: a file cannot be written.
    """
    tables = list(report.tables)
    for table in tables:
        for ending, write in WRITERS.items():
            write_atomically(folder / f"{table.name}.{ending}", write(table))
    return len(tables)


def write_figures(report: Report, folder: Path) -> int:
    """Write each figure as .svg and .png.

    Returns:
        The number of figures.

    Raises:
        UserError: a file cannot be written.
    """
    drawn = list(report.figures)
    for figure in drawn:
        write_atomically(folder / f"{figure.name}.svg", figure.svg)
        write_atomically(folder / f"{figure.name}.png", figure.png)
    return len(drawn)
