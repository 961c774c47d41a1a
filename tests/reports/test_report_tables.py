"""The table type: what Markdown, CSV and JSON say is the same."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.reports.page.tables import Cell, Column, Table, as_csv, as_json, as_markdown

COLUMNS = (Column("what"), Column("value", ".3f"), Column("share", ".1%"))
TEXT = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
NUMBER = st.one_of(st.none(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6))
ROWS = st.lists(st.tuples(TEXT, NUMBER, NUMBER), max_size=6)


def cells_of(line: str) -> list[str]:
    """The cells of a line of Markdown, as they were before they were escaped."""
    cells, cell, letters = [], "", iter(line.removeprefix("| ").removesuffix(" |"))
    for letter in letters:
        if letter == "|":
            cells.append(cell.strip())
            cell = ""
        else:
            cell += next(letters) if letter == "\\" else letter
    return [one.replace("&lt;", "<") for one in (*cells, cell.strip())]


@given(ROWS)
def test_csv_and_json_hold_the_same_values(rows: list[tuple[Cell, ...]]) -> None:
    """Else somebody who loads one file gets other numbers than somebody who loads the other."""
    table = Table("t", "Title", COLUMNS, tuple(rows))
    read = list(csv.reader(io.StringIO(as_csv(table))))
    found = json.loads(as_json(table))["rows"]
    assert read[0] == [column.title for column in COLUMNS]
    assert read[1:] == [["" if cell is None else str(cell) for cell in row.values()] for row in found]
    assert [tuple(row.values()) for row in found] == rows


@given(ROWS)
def test_markdown_holds_what_people_read(rows: list[tuple[Cell, ...]]) -> None:
    """Else a table pasted into a README is broken by a bar in a cell, or shows other numbers than the page."""
    table = Table("t", "Title", COLUMNS, tuple(rows))
    lines = as_markdown(table).splitlines()[4:]
    expected = [[cell.replace("&lt;", "<") for cell in row] for row in table.texts]
    assert [cells_of(line) for line in lines] == expected


def test_zero_has_no_sign() -> None:
    """Else a difference that is none looks like a loss."""
    table = Table("t", "Title", COLUMNS, (("a", -0.0, -0.0001), ("b", -1.0, 0)))
    assert table.texts == (("a", "0.000", "0.0%"), ("b", "-1.000", "0.0%"))


def test_text_that_no_file_may_hold_is_replaced() -> None:
    """Else a lone surrogate in a name stops the report when its file is written."""
    table = Table("t", "Title", COLUMNS[:1], (("a\ud800b\x00\u202e",),))
    for text in (as_markdown(table), as_csv(table), as_json(table)):
        text.encode()
        assert "\u202e" not in text


def test_html_in_a_cell_is_text_in_markdown() -> None:
    """Else a model's name with a tag in it becomes part of a page that shows the Markdown."""
    table = Table("t", "Title", COLUMNS[:1], (("<script>alert(1)</script>",),))
    assert "<script" not in as_markdown(table)
