"""What a heuristic is worth on an instance set: values, mean, standard error, gap; as table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from operators.records import Outcome, Status
from problems.base import Problem
from problems.references import Reference, ceiling_of, gap, references

_WORST = 5
_VALUES_IN_A_ROW = 8


@dataclass(frozen=True)
class Scores:
    """One heuristic on one instance set. Values are as people read them, not negated.

    Attributes:
        problem: name of the problem.
        set_name: name of the set, such as "test50".
        measure: what the objective is.
        maximise: whether larger is better.
        outcomes: one an instance, each with the objective of that instance alone.
        known: baselines and ceiling on the same instances.
    """

    problem: str
    set_name: str
    measure: str
    maximise: bool
    outcomes: tuple[Outcome, ...]
    known: tuple[Reference, ...]

    @classmethod
    def of(cls, problem: Problem, set_name: str, outcomes: Mapping[int, Outcome]) -> Scores:
        """From the outcomes by instance."""
        found = tuple(outcomes[index] for index in range(len(problem.instances)))
        return cls(problem.name, set_name, problem.measure, problem.maximise, found, references(problem))

    @property
    def values(self) -> tuple[float | None, ...]:
        """The value of each instance; None where the heuristic failed."""
        sign = -1.0 if self.maximise else 1.0
        return tuple(None if one.objective is None else sign * one.objective for one in self.outcomes)

    @property
    def complete(self) -> bool:
        """Whether every instance was solved."""
        return all(one.valid for one in self.outcomes)

    @property
    def mean(self) -> float | None:
        """Mean over all instances; None unless all were solved: a mean over some of them compares with nothing."""
        return _mean(self.values)

    @property
    def standard_error(self) -> float | None:
        """Of the mean, from the spread between instances; None for a single instance."""
        return _standard_error(self.values)

    @property
    def gap(self) -> float | None:
        """How far the mean is from that of the ceiling, as a fraction of the ceiling's."""
        ceiling = ceiling_of(self.known)
        return None if ceiling is None else self.gap_of(self.mean, ceiling.mean)

    def gap_of(self, value: float | None, ceiling: float | None) -> float | None:
        """How far a value is from a ceiling; None when either is not known."""
        return None if value is None or not ceiling else gap(value, ceiling, self.maximise)


def as_dict(scores: Scores) -> dict[str, Any]:
    """Everything, for JSON."""
    ceiling = ceiling_of(scores.known)
    instances = [
        {
            "instance": index,
            "status": outcome.status.value,
            "value": value,
            "ceiling": best,
            "gap": scores.gap_of(value, best),
            "detail": outcome.detail,
        }
        for index, (outcome, value, best) in enumerate(_rows(scores, ceiling))
    ]
    return {
        "problem": scores.problem,
        "set": scores.set_name,
        "measure": scores.measure,
        "maximise": scores.maximise,
        "solved": sum(one.valid for one in scores.outcomes),
        "mean": scores.mean,
        "standard_error": scores.standard_error,
        "gap": scores.gap,
        "references": {one.name: one.mean for one in scores.known},
        "ceiling": None if ceiling is None else {"name": ceiling.name, "mean": ceiling.mean, "by": ceiling.by},
        "instances": instances,
    }


def as_json(found: Sequence[Scores]) -> str:
    """All sets as one JSON list."""
    return json.dumps([as_dict(scores) for scores in found], indent=1)


def as_csv(found: Sequence[Scores]) -> str:
    """One line an instance, with a header."""
    text = io.StringIO()
    names = ("problem", "set", "instance", "status", "value", "ceiling", "gap", "detail")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for scores in found:
        for row in as_dict(scores)["instances"]:
            writer.writerow({"problem": scores.problem, "set": scores.set_name, **row})
    return text.getvalue().rstrip("\n")


def as_table(scores: Scores) -> RenderableType:
    """Mean beside baselines and ceiling, then the values, then what failed."""
    sense = "higher" if scores.maximise else "lower"
    title = f"{scores.problem} {scores.set_name}, {len(scores.outcomes)} instances: {scores.measure}, {sense} is better"
    ceiling = ceiling_of(scores.known)
    table = Table()
    table.add_column("what")
    for name in ("mean", "standard error", f"gap to {ceiling.name}" if ceiling else "gap"):
        table.add_column(name, justify="right")
    rows = [(one.name, one.mean, _standard_error(one.values)) for one in scores.known]
    rows.append(("this heuristic", scores.mean, scores.standard_error))
    worst = -math.inf if scores.maximise else math.inf
    for name, mean, error in sorted(rows, key=lambda row: worst if row[1] is None else row[1], reverse=scores.maximise):
        distance = scores.gap_of(mean, ceiling.mean) if ceiling else None
        table.add_row(name, _number(mean), _number(error), "" if distance is None else f"{distance:.2%}")
    parts: list[RenderableType] = [Text(title), table, Text(_value_lines(scores.values))]
    return Group(*parts, *(Text(line) for line in _failures(scores.outcomes)))


def _rows(scores: Scores, ceiling: Reference | None) -> Sequence[tuple[Outcome, float | None, float | None]]:
    best = ceiling.values if ceiling else (None,) * len(scores.outcomes)
    return list(zip(scores.outcomes, scores.values, best, strict=True))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _standard_error(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) != len(values) or len(known) < 2:
        return None
    return float(np.std(known, ddof=1) / math.sqrt(len(known)))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _value_lines(values: Sequence[float | None]) -> str:
    cells = ["failed" if value is None else f"{value:.4f}" for value in values]
    width = max(map(len, cells)) + 2
    lines = []
    for first in range(0, len(cells), _VALUES_IN_A_ROW):
        row = "".join(cell.rjust(width) for cell in cells[first : first + _VALUES_IN_A_ROW])
        lines.append(f"{first:5}:{row}")
    return "\n".join(lines)


def _failures(outcomes: Sequence[Outcome]) -> list[str]:
    failed = [(index, one) for index, one in enumerate(outcomes) if not one.valid]
    if not failed:
        return []
    kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(one.status.value for _, one in failed).most_common())
    lines = [f"{len(failed)} of {len(outcomes)} instances failed, so there is no mean: {kinds}"]
    lines += [f"  instance {index}: {one.status.value}, {one.detail}" for index, one in failed[:_WORST]]
    if any(one.status is Status.INFRASTRUCTURE for _, one in failed):
        lines.append("  infrastructure is a failure of this machine, not of the heuristic: run it again")
    return lines
