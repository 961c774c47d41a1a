"""One type of table, written as Markdown, CSV and JSON; the page's template writes it as HTML from `Table.texts`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

from eoh_esopt.reports.page.text import plain

Cell = str | int | float | None
"""None where there is no value."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: its heading.
        form: how people read its numbers, as `format` takes it; empty for text.
    """

    title: str
    form: str = ""

    @property
    def number(self) -> bool:
        """Whether it holds numbers."""
        return bool(self.form)

    def text(self, cell: Cell) -> str:
        """A cell as people read it; text in a column of numbers stays as it is."""
        if cell is None or isinstance(cell, str):
            return cell or ""
        text = format(cell, self.form)
        return text.removeprefix("-") if not text.strip("-0.%") else text  # no minus before a zero


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: of its files.
        title: what it shows; its caption.
        columns: in order.
        rows: a cell for each column.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows as people read them."""
        return tuple(
            tuple(column.text(cell) for column, cell in zip(self.columns, row, strict=True)) for row in self.rows
        )


def as_markdown(table: Table) -> str:
    """The table as people read it, under its title."""
    head = [column.title for column in table.columns]
    rule = ["---:" if column.number else "---" for column in table.columns]
    lines = [_line(map(_escaped, head)), _line(rule), *(_line(map(_escaped, row)) for row in table.texts)]
    return plain(f"{_escaped(table.title)}\n\n" + "\n".join(lines) + "\n")


def as_csv(table: Table) -> str:
    """The values as they are, under a heading line; empty where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.title for column in table.columns)
    writer.writerows(table.rows)
    return plain(text.getvalue())


def as_json(table: Table) -> str:
    """The title, and the rows as objects with a key for each column; null where there is no value."""
    names = [column.title for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return plain(json.dumps({"title": table.title, "rows": rows}, indent=1, ensure_ascii=False)) + "\n"


WRITERS = {"md": as_markdown, "csv": as_csv, "json": as_json}
"""By the ending of the file."""


def columns(*titles: str, **numbers: str) -> tuple[Column, ...]:
    """Columns of text, then columns of numbers with their form; underscores in titles become spaces."""
    return (*map(Column, titles), *(Column(name.replace("_", " "), form) for name, form in numbers.items()))


def _line(cells: Sequence[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown takes as it is, on one line."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
    return " ".join(escaped.split())
