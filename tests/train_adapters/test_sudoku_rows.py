"""Rows of a file: written and read back, and every sort of damage named with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.sudoku.generator import Recipe, generate
from train_adapters.sudoku.grid import compact
from train_adapters.sudoku.rows import SudokuRow, as_text, read_rows

Fields = dict[str, Any]
Damage = Callable[[Fields], object]

ROWS = generate(Recipe(splits=(("train", 3),)))["train"]
SMALL = generate(Recipe(box=2, masks=(4,), splits=(("train", 3),)))["train"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.jsonl"


@pytest.mark.parametrize("rows", [ROWS, SMALL])
def test_written_and_read(path: Path, rows: list[SudokuRow]) -> None:
    """Else puzzles that were drawn could not be kept in a file."""
    path.write_text(as_text(rows), encoding="utf-8")
    assert read_rows(path) == rows
    path.write_text(as_text(rows).removesuffix("\n"), encoding="utf-8")
    assert read_rows(path) == rows


def test_fields_may_come_in_any_order(path: Path) -> None:
    """Else a file that another tool wrote, in its own order and with spaces, would be refused for its looks."""
    fields = json.loads(ROWS[0].line())
    path.write_text(json.dumps(dict(reversed(fields.items()))) + "\r\n", encoding="utf-8")
    assert read_rows(path) == ROWS[:1]


def test_line_ends_inside_a_text(path: Path) -> None:
    """Else a row whose source holds a line separator, which JSON allows, would be cut in two."""
    fields = {**json.loads(ROWS[0].line()), "source": "a\u2028b\x85c"}
    path.write_text(json.dumps(fields, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [row.source for row in read_rows(path)] == ["a\u2028b\x85c"]


def put(fields: Fields, grid: str, row: int, column: int, value: object) -> None:
    fields[grid][row][column] = value


def recompact(fields: Fields, grid: str) -> None:
    fields[f"{grid}_compact"] = compact(fields[grid])


def blank_out(fields: Fields, count: int) -> None:
    """Blank the first rows, in every field alike."""
    fields["puzzle"] = [[0] * 9 if row < count else values for row, values in enumerate(fields["solution"])]
    fields["mask_count"] = 9 * count
    recompact(fields, "puzzle")


def swap_digits(fields: Fields) -> None:
    """A solution with two digits of a row exchanged: the columns hold digits twice."""
    row = fields["solution"][8]
    row[0], row[1] = row[1], row[0]
    fields["puzzle"][8] = list(row)


DAMAGES: list[tuple[str, Damage, str]] = [
    ("id", lambda row: row.pop("id"), "is missing"),
    ("solution", lambda row: row.pop("solution"), "is missing"),
    ("level", lambda row: row.update(level="hard"), "is no field of a row"),
    ("id", lambda row: row.update(id=7), "is 7; give a text"),
    ("split", lambda row: row.update(split=""), "is ''; give a text"),
    ("id", lambda row: row.update(id="train-000000"), "is the id of line 1 too"),
    ("mask_count", lambda row: row.update(mask_count=5), "is 5; it must be 10"),
    ("mask_count", lambda row: row.update(mask_count="10"), "is '10'; give a whole number"),
    ("mask_count", lambda row: row.update(mask_count=True), "is True; give a whole number"),
    ("mask_count", lambda row: row.update(mask_count=-1), "is -1; give a whole number"),
    ("puzzle", lambda row: row.update(puzzle=row["puzzle_compact"]), "give a list of 4 rows of 4 numbers, or of 9"),
    ("puzzle", lambda row: row.update(puzzle=[]), "give a list of 4 rows"),
    ("puzzle", lambda row: row["puzzle"].pop(), "give a list of 4 rows"),
    ("puzzle", lambda row: row["puzzle"][3].pop(), "as row 4; give a list of 9 numbers"),
    ("puzzle", lambda row: put(row, "puzzle", 3, 3, "5"), "has '5' in row 4; give whole numbers from 0 to 9"),
    ("puzzle", lambda row: put(row, "puzzle", 3, 3, 10), "has 10 in row 4"),
    ("puzzle", lambda row: put(row, "puzzle", 3, 3, None), "has None in row 4"),
    ("puzzle", lambda row: put(row, "puzzle", 3, 3, 4.0), "has 4.0 in row 4"),
    ("solution", lambda row: put(row, "solution", 0, 0, 0), "has 0 in row 1; give whole numbers from 1 to 9"),
    ("solution", lambda row: row.update(solution=[list(one) for one in SMALL[0].solution]), "is 4 x 4"),
    ("solution", swap_digits, "does not hold each digit once"),
    ("puzzle", lambda row: put(row, "puzzle", 0, 0, row["puzzle"][0][0] % 9 + 1), "at r1c1, its solution"),
    ("puzzle", lambda row: blank_out(row, 5), "has more than one solution"),
    ("puzzle_compact", lambda row: row.update(puzzle_compact="." * 81), "as puzzle says"),
    ("solution_compact", lambda row: row.update(solution_compact=row["puzzle_compact"]), "as solution says"),
]


@pytest.mark.parametrize(("field", "damage", "told"), DAMAGES, ids=[f"{field}: {told}" for field, _, told in DAMAGES])
def test_a_damaged_row(path: Path, field: str, damage: Damage, told: str) -> None:
    """Else a training learns from a wrong puzzle, or its user searches for the line for an hour."""
    fields = json.loads(ROWS[1].line())
    damage(fields)
    path.write_text(f"{ROWS[0].line()}\n{json.dumps(fields)}\n{ROWS[2].line()}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_rows(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: field {field!r} ")
    assert told in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "the line is empty; remove it"),
        ("   ", "the line is empty; remove it"),
        ("{", "no JSON"),
        ("[1, 2]", "is no JSON object"),
        ("null", "is no JSON object"),
        ("[" * 100_000, "no JSON"),
        ('{"id": "a", "id": "b"}', "field 'id' is given twice"),
        (ROWS[1].line() + ROWS[2].line(), "no JSON"),
    ],
)
def test_a_line_that_is_no_row(path: Path, line: str, told: str) -> None:
    """Else a file that was cut off ends in a trace of the JSON module."""
    path.write_text(f"{ROWS[0].line()}\n{line}\n{ROWS[2].line()}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_rows(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no rows"),
        (b"\n", "has no rows"),
        (b"\xff\xfe{}", "is not UTF-8 text (invalid start byte at byte 0)"),
    ],
)
def test_a_file_without_rows(path: Path, content: bytes, told: str) -> None:
    """Else an empty download shows up as a division by zero at the first evaluation."""
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_rows(path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_a_file_that_is_not_there(path: Path) -> None:
    """Else a typing error in the path ends in a trace."""
    with pytest.raises(UserError, match=r"Cannot read .*train.jsonl: No such file or directory\. Give"):
        read_rows(path)
    with pytest.raises(UserError, match="Is a directory"):
        read_rows(path.parent)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(field=st.sampled_from(list(json.loads(ROWS[0].line()))), value=json_values)
def test_any_value_in_any_field(tmp_path_factory: pytest.TempPathFactory, field: str, value: object) -> None:
    """Else some damage that nobody thought of raises an error of Python's instead of naming line and field."""
    path = tmp_path_factory.mktemp("rows") / "train.jsonl"
    fields = {**json.loads(ROWS[0].line()), field: value}
    path.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    try:
        outcome = json.loads(read_rows(path)[0].line())
    except UserError as error:
        outcome = str(error)
    assert outcome == fields or str(outcome).startswith(f"{path}, line 1: field ")
