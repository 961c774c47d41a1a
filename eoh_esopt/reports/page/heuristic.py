"""The best heuristic of a task's runs: where it comes from, its code in colours, and what sets it apart from a seed."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from eoh_esopt.experiments import held_out
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page.data import TaskRuns, is_finished
from eoh_esopt.reports.page.series import GIVEN
from eoh_esopt.reports.page.tables import Table, columns
from eoh_esopt.reports.page.text import plain
from operators.errors import UserError
from operators.task import SeedHeuristic
from problems import registry

_HEAD = "# The best heuristic of a run of eoh-esopt.\n"
_HEAD_LINES = 3
_CONTEXT = 3


@dataclass(frozen=True)
class DiffLine:
    """One line of a difference.

    Attributes:
        kind: "added", "removed", "same" or "place".
        text: with its sign in front.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class BestHeuristic:
    """The best of all runs of a task.

    Attributes:
        run: whose it is.
        arm: its label.
        value: as people read it.
        origin: candidate and operator.
        idea: of its author, a sentence.
        code: in colours.
        seed_idea: of the seed heuristic it is nearest to; empty where there is none.
        diff: to that seed heuristic; empty where it is one.
        notes: what is not shown and why, and what a reader has to know.
        instances: its values instance by instance, summed up; None where the log does not hold them.
        held_out: its values on other instances; None where they were not measured.
    """

    run: RunRecord
    arm: str
    value: str
    origin: str
    idea: str
    code: Markup
    seed_idea: str
    diff: tuple[DiffLine, ...]
    notes: tuple[str, ...]
    instances: Table | None
    held_out: Table | None


def best_heuristic(task: TaskRuns) -> BestHeuristic | None:
    """The best of a task; None where nothing was valid. Of equal ones, that of the first run."""
    ranked = [(run.best, arm.label, run) for arm in task.arms for run in arm.runs if run.best is not None]
    if not ranked:
        return None
    _, label, run = min(ranked, key=lambda one: one[0])
    number, operator, idea = _origin(run)
    notes = [] if is_finished(run) else ["Its run is unfinished."]
    if operator in GIVEN:
        notes.append("Nothing that the model wrote was better: it is one of the heuristics that the search began with.")
    code, seeds = _code(run, notes), _seeds(run, notes)
    nearest, elsewhere = _nearest(code, seeds), _held_out(task, run, notes)
    return BestHeuristic(
        run=run,
        arm=label,
        value=task.scale.show(run.best if run.best is not None else 0.0),
        origin=f"candidate {number}, operator {operator}",
        idea=idea,
        code=highlighted(code),
        seed_idea=nearest.idea if nearest else "",
        diff=difference(nearest.code, code) if nearest else (),
        notes=tuple(notes),
        instances=_instances(task, run, number),
        held_out=elsewhere,
    )


def highlighted(code: str) -> Markup:
    """Python source as HTML with a class for each kind of word."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return Markup(highlight(plain(code), PythonLexer(), HtmlFormatter(nowrap=True)))  # pygments escapes


def difference(old: str, new: str) -> tuple[DiffLine, ...]:
    """A unified difference, without the lines that name files."""
    lines = difflib.unified_diff(
        plain(old).strip().splitlines(), plain(new).strip().splitlines(), lineterm="", n=_CONTEXT
    )
    return tuple(DiffLine(_KINDS.get(line[:1], "same"), line) for line in list(lines)[2:])


_KINDS = {"+": "added", "-": "removed", "@": "place"}


def _origin(run: RunRecord) -> tuple[int, str, str]:
    """Id, operator and idea of the best candidate: the first that reached the best objective."""
    for event in run.events:
        if event["event"] == "batch" and run.best in event["objectives"]:
            place = event["objectives"].index(run.best)
            return event["ids"][0] + place, event["operator"], event["ideas"][place]
    raise UserError(f"The log in {run.folder} is damaged: no candidate has its best objective. Restore it from a copy.")


def _code(run: RunRecord, notes: list[str]) -> str:
    """The best heuristic's source without the lines that head its file."""
    try:
        text = run.best_code
    except UserError as error:
        notes.append(str(error))
        return ""
    lines = text.splitlines(keepends=True)
    return "".join(lines[_HEAD_LINES:] if text.startswith(_HEAD) else lines)


def _seeds(run: RunRecord, notes: list[str]) -> Sequence[SeedHeuristic]:
    """The seed heuristics of the run's problem, where it can still be loaded."""
    if "host" in run.facts:
        notes.append("It ran inside of another engine, whose problem has no seed heuristics here.")
        return ()
    try:
        return registry.get(run.config.problem).task.seeds
    except UserError as error:
        notes.append(f"There is no difference to a seed heuristic: {error}")
        return ()


def _nearest(code: str, seeds: Sequence[SeedHeuristic]) -> SeedHeuristic | None:
    """The seed with the most text in common."""
    if not code:
        return None
    return max(
        seeds,
        key=lambda seed: difflib.SequenceMatcher(None, seed.code.strip(), code.strip(), autojunk=False).ratio(),
        default=None,
    )


def _instances(task: TaskRuns, run: RunRecord, candidate: int) -> Table | None:
    """How its values spread over the instances it was chosen by."""
    found = [event for event in run.events if event["event"] == "outcome" and event["id"] == candidate]
    values = [task.scale.natural(value) for value in found[-1]["per_instance"]] if found else []
    if not values:
        return None
    best, worst = (max, min) if task.scale.maximise else (min, max)
    row = (len(values), sum(values) / len(values), best(values), worst(values))
    heads = columns(instances="d", mean=".4f", best_instance=".4f", worst_instance=".4f")
    return Table(f"{task.key}-instances", f"On the instances it was chosen by ({task.scale.title})", heads, (row,))


def _held_out(task: TaskRuns, run: RunRecord, notes: list[str]) -> Table | None:
    """What its file was worth on other instances, if that was measured."""
    path = run.folder / held_out.FILE
    if not path.is_file():
        return None
    try:
        rows = tuple(_held_out_rows(json.loads(path.read_text(encoding="utf-8")), run.best_code))
    except (OSError, ValueError, KeyError, TypeError, UserError) as error:
        notes.append(f"{path.name} of the run cannot be read ({type(error).__name__}): remove it and score it again.")
        return None
    heads = columns("set", instances="d", mean=".4f", standard_error=".4f")
    title = f"On held-out instances, which it was not chosen by ({task.scale.title})"
    return Table(f"{task.key}-held-out", title, heads, rows) if rows else None


def _held_out_rows(kept: Sequence[Mapping[str, Any]], code: str) -> Iterator[tuple[str, int, float, float | None]]:
    """One row a set on which this very heuristic was scored."""
    digest = hashlib.sha256(code.encode()).hexdigest()
    for one in kept:
        if one["heuristic"] == digest:
            values = [float(value) for value in one["values"]]
            error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
            yield str(one["set"]), len(values), math.fsum(values) / len(values), error
