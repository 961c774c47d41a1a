"""A comparison of trainings to read: a table on the terminal, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from train_adapters.grpo.comparison import Arm, Score, TrainingComparison

_LEGEND = (
    "FLOPs are counted as in the paper: 2 a weight and token read or written for ES, 8 for GRPO.",
    "Seconds and peak memory are of rollouts and updates, without evaluations after them.",
    "In brackets: 95 % interval of the mean reward over tasks.",
)


def header(comparison: TrainingComparison) -> tuple[str, ...]:
    """Names of the columns."""
    return ("figure", *(arm.name for arm in comparison.arms))


def rows(comparison: TrainingComparison) -> list[tuple[str, ...]]:
    """A row for each figure, a column for each arm."""
    return [(name, *(tell(arm) for arm in comparison.arms)) for name, tell in _FIGURES.items()]


def notes(comparison: TrainingComparison) -> tuple[str, ...]:
    """What is said below the table."""
    return (*comparison.notes, *_LEGEND)


def as_table(comparison: TrainingComparison) -> RenderableType:
    """For the terminal."""
    table = Table(title=_title(comparison))
    for place, name in enumerate(header(comparison)):
        table.add_column(name, justify="right" if place else "left")
    for row in rows(comparison):
        table.add_row(*map(Text, row))
    return Group(table, *(Text(f"- {note}") for note in notes(comparison)))


def as_markdown(comparison: TrainingComparison) -> str:
    """For files that people read."""
    lines = [f"### {_title(comparison)}", "", _line(header(comparison)), "|---|" + "---:|" * len(comparison.arms)]
    lines += map(_line, rows(comparison))
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(comparison))])


def as_csv(comparison: TrainingComparison) -> str:
    """A line for each arm, with full precision; what there is not is empty."""
    found = []
    for arm in comparison.arms:
        line: dict[str, object] = {}
        for name, value in vars(arm).items():
            if name in ("before", "after", "test"):
                line |= {f"{name}_{part}": getattr(value, part, None) for part in ("mean", "low", "high")}
            else:
                line[name] = value
        found.append(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue().rstrip("\n")


def as_json(comparison: TrainingComparison) -> str:
    """Everything, with full precision."""
    return json.dumps(comparison.as_dict(), indent=1, allow_nan=False)


WRITERS: Mapping[str, Callable[[TrainingComparison], str]] = {"md": as_markdown, "csv": as_csv, "json": as_json}
"""Forms for files and programs."""


def _title(comparison: TrainingComparison) -> str:
    unequal = ", UNEQUAL BUDGETS" if comparison.unequal else ""
    return f"{comparison.adapter} with {comparison.model}, seed {comparison.seed}{unequal}"


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _score(score: Score | None) -> str:
    if score is None or score.mean is None:
        return "-"
    interval = "" if score.low is None else f" ({score.low:.3f} to {score.high:.3f})"
    return f"{score.mean:.3f}{interval}"


def _memory(arm: Arm) -> str:
    against = "" if not arm.inference_bytes else f" ({arm.peak_bytes / arm.inference_bytes:.2f} x inference)"
    return f"{arm.peak_bytes / 1e9:.2f} GB{against}"


_FIGURES: Mapping[str, Callable[[Arm], str]] = {
    "rollouts": lambda arm: f"{arm.rollouts:,}",
    "replies": lambda arm: f"{arm.replies:,}",
    "tokens": lambda arm: f"{arm.tokens:,}",
    "updates": lambda arm: f"{arm.updates:,}",
    "model FLOPs": lambda arm: "-" if arm.flops is None else f"{arm.flops:.3g}",
    "wall seconds": lambda arm: f"{arm.seconds:,.1f}",
    "peak memory": _memory,
    "val, before": lambda arm: _score(arm.before),
    "val, after": lambda arm: _score(arm.after),
    "test, after": lambda arm: _score(arm.test),
}
