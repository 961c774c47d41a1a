"""A comparison to read: blocks of rows, as tables on the terminal, as Markdown, as CSV or as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from eoh_esopt.experiments.comparison_records import (
    TESTS,
    TRAINING,
    Arm,
    Cell,
    Comparison,
    Contrast,
    Table,
    TestResult,
    Wins,
)


@dataclass(frozen=True)
class Block:
    """A table with what is said before and after it.

    Attributes:
        title: what it shows; empty for what belongs to the block before.
        header: name of each column; the first column is text, the others are numbers.
        rows: cells as text.
        notes: lines below.
    """

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = field(default=())


def blocks(comparison: Comparison) -> list[Block]:
    """All there is to read: for each objective and cell its arms, then their contrasts; last how to read it."""
    found = []
    for table in comparison.tables:
        for cell in table.cells:
            found.append(_arms(cell, comparison))
            if table.objective == TRAINING:
                found.append(_spent(cell))
            if cell.contrasts:
                found.append(_contrasts(cell, comparison))
        if len(table.cells) > 1 and table.records:
            found.append(_records(table, comparison))
    if comparison.notes:
        found.append(Block("To know of these runs", notes=comparison.notes))
    if any(table.records for table in comparison.tables):
        found.append(Block("How to read this", notes=tuple(_legend(comparison))))
    return found


def as_table(comparison: Comparison) -> RenderableType:
    """For the terminal."""
    parts: list[RenderableType] = []
    for block in blocks(comparison):
        if block.title:
            parts.append(Text(block.title, style="bold"))
        if block.header:
            table = RichTable()
            for place, name in enumerate(block.header):
                table.add_column(Text(name), justify="right" if place else "left")
            for row in block.rows:
                table.add_row(*map(Text, row))
            parts.append(table)
        parts += [Text(f"- {note}") for note in block.notes]
        parts.append(Text())
    return Group(*parts[:-1])


def as_markdown(comparison: Comparison) -> str:
    """For files that people read."""
    lines = []
    for block in blocks(comparison):
        lines += [f"### {block.title}", ""] if block.title else []
        if block.header:
            lines.append(_markdown_row(block.header))
            lines.append("|---|" + "---:|" * (len(block.header) - 1))
            lines += [_markdown_row(row) for row in block.rows]
            lines.append("")
        lines += [f"- {note}" for note in block.notes]
        lines += [""] if block.notes else []
    return "\n".join(lines).rstrip("\n")


def as_json(comparison: Comparison) -> str:
    """Everything, with full precision."""
    return json.dumps(asdict(comparison), indent=1, allow_nan=False)


def as_csv(comparison: Comparison) -> str:
    """One line for each arm of each cell, with full precision; what there is not is empty."""
    text = io.StringIO()
    rows = [_flat(cell, arm) for table in comparison.tables for cell in table.cells for arm in cell.arms]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _arms(cell: Cell, comparison: Comparison) -> Block:
    sense = "higher" if cell.maximise else "lower"
    budget = f"{cell.budget:,.0f} {comparison.budget_of.replace('_', ' ')}"
    unequal = ", UNEQUAL budgets" if cell.unequal else ""
    title = f"{cell.problem}, {cell.set_name}, {budget}{unequal}: {cell.measure}, {sense} is better"
    gap = f"gap to {cell.ceiling}" if cell.ceiling else "gap"
    header = ("arm", "runs", "mean", "sd", "best", "median", gap)
    rows = [
        (
            arm.name,
            str(len(arm.runs)),
            *map(_number, (arm.mean, arm.sd, arm.best, arm.median)),
            "" if arm.gap is None else f"{arm.gap:.2%}",
        )
        for arm in cell.arms
    ]
    if cell.ceiling_value is not None:
        rows.append((cell.ceiling or "", "", _number(cell.ceiling_value), *[""] * 4))
    return Block(title, header, tuple(rows), cell.notes)


def _spent(cell: Cell) -> Block:
    header = ("mean spent", "candidates", "valid", "model calls", "tokens", "evaluated", "updates")
    rows = [
        (
            arm.name,
            f"{arm.spent['candidates']:,.0f}",
            f"{arm.spent['valid'] / max(arm.spent['candidates'], 1):.0%}",
            *(f"{arm.spent[name]:,.0f}" for name in ("model_calls", "tokens", "evaluations", "updates")),
        )
        for arm in cell.arms
    ]
    return Block("", header, tuple(rows))


def _contrasts(cell: Cell, comparison: Comparison) -> Block:
    """The contrasts side by side, a row for each thing that is said of them."""
    shown = cell.contrasts
    rows = [
        ("difference of the means", *(_difference(one) for one in shown)),
        (f"{comparison.confidence:.0%} interval", *(_interval(one) for one in shown)),
        ("  by bootstrap", *(one.bootstrap for one in shown)),
        ("effect, positive is better", *(f"{_signed(one.effect)} ({one.effect_name})" for one in shown)),
    ]
    for name in TESTS:
        rows.append((f"p, {name}", *(_p(one, name) for one in shown)))
    rows += [
        ("least p of the permutation test", *(_p_value(_result(one, "permutation").smallest) for one in shown)),
        ("wins, ties, losses", *(_wins(one.wins) for one in shown)),
        (f"repetitions for power {comparison.power:.0%}", *(str(one.repetitions_needed or "none") for one in shown)),
        ("least effect that these runs show", *(_signed(one.visible_effect) for one in shown)),
    ]
    header = (f"against {shown[0].baseline}", *(one.arm for one in shown))
    title = f"{cell.problem}, {cell.set_name}: against {shown[0].baseline}"
    return Block(title, header, tuple(rows), tuple(note for one in shown for note in one.notes))


def _difference(one: Contrast) -> str:
    return f"{_shown(one.difference)} ({one.words})"


def _interval(one: Contrast) -> str:
    return "none" if one.interval is None else f"{_shown(one.interval[0])} to {_shown(one.interval[1])}"


def _result(one: Contrast, name: str) -> TestResult:
    absent = TestResult(name, "", None, None, None, "not paired")
    return next((test for test in one.tests if test.name == name), absent)


def _p(one: Contrast, name: str) -> str:
    test = _result(one, name)
    if test.p is None:
        return f"none: {test.reason}"
    return f"{_p_value(test.p)}, Holm {_p_value(test.holm)} ({test.kind})"


def _p_value(p: float | None) -> str:
    return "none" if p is None else f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _wins(wins: Wins) -> str:
    better = f"{wins.wins} better{_size(wins.mean_win, wins.unit)}"
    worse = f"{wins.losses} worse{_size(wins.mean_loss, wins.unit)}"
    return f"{better}, {wins.ties} equal, {worse} ({wins.of})"


def _size(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f" by {100 * abs(value):.2g} %" if unit.startswith("fraction") else f" by {abs(value):.4f}"


def _records(table: Table, comparison: Comparison) -> Block:
    rows = [(name, _wins(wins)) for name, wins in table.records.items()]
    title = f"All rows of {table.objective}: means against {comparison.baseline}, mean size of the wins and losses"
    return Block(title, ("arm", "wins, ties, losses"), tuple(rows))


def _legend(comparison: Comparison) -> list[str]:
    """What the words of the tables mean."""
    p = (
        f"one-sided: the chance of an advantage like this over {comparison.baseline}, were there none"
        if comparison.alternative == "better"
        else "two-sided: the chance of a difference like this either way, were there none"
    )
    contrasts = ", ".join(
        f"{sum(len(cell.contrasts) for cell in table.cells)} in {table.objective}" for table in comparison.tables
    )
    lines = [
        f"p is {p}. Holm corrects it for all contrasts of its table ({contrasts}).",
        "The t-test is the paper's: equal variances, unpaired. The permutation test assumes least.",
        f"Repetitions are those of each arm that see an effect as large as the observed one at a level of 0.05 with a "
        f"chance of {comparison.power:.0%}, and the least effect is what these runs see so, both in standard "
        "deviations; the observed effect of few runs is itself uncertain.",
        "Bootstrap intervals of few runs are too narrow: at 5 repetitions expect 80 to 90 % instead of 95 %.",
    ]
    if any(table.objective != TRAINING for table in comparison.tables):
        lines.append("Every run's heuristic was selected by its training objective; held-out instances chose nothing.")
    return lines


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _shown(difference: float) -> str:
    """With its sign; zero has none to speak of."""
    return f"{round(difference, 4) + 0.0:+.4f}"


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:+.2f}"


def _flat(cell: Cell, arm: Arm) -> dict[str, Any]:
    """An arm's row: its values, and its contrast where it has one."""
    row: dict[str, Any] = {
        "objective": cell.set_name,
        "problem": cell.problem,
        "budget": cell.budget,
        "unequal": cell.unequal,
        "arm": arm.name,
        "runs": len(arm.runs),
        "seeds": " ".join(str(run.seed) for run in arm.runs),
        "values": " ".join("none" if run.value is None else repr(run.value) for run in arm.runs),
        "higher_is_better": cell.maximise,
        **{name: getattr(arm, name) for name in ("mean", "sd", "best", "median", "gap")},
        "ceiling": cell.ceiling_value,
        **arm.spent,
    }
    for one in cell.contrasts:
        if one.arm == arm.name:
            row |= _flat_contrast(one)
    return row


def _flat_contrast(one: Contrast) -> Mapping[str, Any]:
    low, high = one.interval or (None, None)
    names = ("baseline", "paired", "difference", "words", "effect", "effect_name")
    row = {name: getattr(one, name) for name in names} | {"low": low, "high": high, "bootstrap": one.bootstrap}
    for test in one.tests:
        name = test.name.lower().replace("-", "_")
        row |= {f"p_{name}": test.p, f"holm_{name}": test.holm, f"kind_{name}": test.kind or test.reason}
    wins = {name: getattr(one.wins, name) for name in ("wins", "ties", "losses", "mean_win", "mean_loss")}
    needed = {"repetitions_needed": one.repetitions_needed, "visible_effect": one.visible_effect}
    return row | wins | needed
