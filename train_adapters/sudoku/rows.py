"""Puzzles as the rows of a JSONL file: written as they were published, read strictly.

A row has, in this order: `id`, `source`, `split`, `mask_count`, `puzzle` and `solution` as lists of rows (0 for a
blank), `puzzle_compact` and `solution_compact` (one character a cell, '.' for a blank).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from train_adapters.json_lines import Line, read_lines, shown
from train_adapters.sudoku.grid import BOX_SIZES, Grid, blanks, compact, is_solved
from train_adapters.sudoku.solver import has_one_solution

_SIDES = tuple(box * box for box in BOX_SIZES)


@dataclass(frozen=True)
class SudokuRow:
    """One puzzle.

    Attributes:
        id: name, unique in its file.
        split: the part of the data it belongs to.
        puzzle: side x side, 0 for a blank; has exactly one solution.
        solution: side x side, the puzzle completed.
        source: where it comes from.
    """

    id: str
    split: str
    puzzle: Grid
    solution: Grid
    source: str = "generated"

    @property
    def mask_count(self) -> int:
        """Number of blank cells: the fewest turns that solve it."""
        return len(blanks(self.puzzle))

    def line(self) -> str:
        """The row in its file, without the line end."""
        fields = {
            "id": self.id,
            "source": self.source,
            "split": self.split,
            "mask_count": self.mask_count,
            "puzzle": self.puzzle,
            "solution": self.solution,
            "puzzle_compact": compact(self.puzzle),
            "solution_compact": compact(self.solution),
        }
        return json.dumps(fields, separators=(",", ":"))


def as_text(rows: Iterable[SudokuRow]) -> str:
    """The file that holds the rows."""
    return "".join(f"{row.line()}\n" for row in rows)


def read_rows(path: Path) -> list[SudokuRow]:
    """The rows of a file, each checked.

    Raises:
        UserError: the file cannot be read, is empty, or a row breaks the schema: the message names the file, the line,
            the field and the remedy.
    """
    rows: list[SudokuRow] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(read_lines(path, "Sudoku rows"), start=1):
        fields = _Fields(line)
        row = fields.row()
        if row.id in first_line:
            raise fields.error(
                "id", f"{row.id!r} is the id of line {first_line[row.id]} too", "give each row its own id"
            )
        first_line[row.id] = number
        rows.append(row)
    return rows


class _Fields:
    """One line's fields, checked."""

    def __init__(self, line: Line) -> None:
        self.error, self._values = line.error, line.values
        for name in _SCHEMA:
            if name not in self._values:
                raise self.error(name, "is missing", f"a row has the fields {', '.join(_SCHEMA)}")
        for name in self._values:
            if name not in _SCHEMA:
                raise self.error(name, "is no field of a row", f"remove it; a row has {', '.join(_SCHEMA)}")

    def row(self) -> SudokuRow:
        for name, check in _SCHEMA.items():
            check(self, name)
        puzzle, solution = self._grid("puzzle"), self._grid("solution")
        self._check_pair(puzzle, solution)
        for name, grid in (("puzzle", puzzle), ("solution", solution)):
            self._equal(f"{name}_compact", compact(grid), f"as {name} says")
        self._equal("mask_count", len(blanks(puzzle)), "the number of blanks in the puzzle")
        if not has_one_solution(puzzle):
            raise self.error("puzzle", "has more than one solution", "give more of its digits")
        return SudokuRow(self._values["id"], self._values["split"], puzzle, solution, self._values["source"])

    def check_text(self, name: str) -> None:
        value = self._values[name]
        if not isinstance(value, str) or not value:
            raise self.error(name, f"is {shown(value)}", "give a text that is not empty")

    def check_number(self, name: str) -> None:
        value = self._values[name]
        if type(value) is not int or value < 0:
            raise self.error(name, f"is {shown(value)}", "give a whole number of at least 0")

    def check_grid(self, name: str) -> None:
        value, least = self._values[name], 0 if name == "puzzle" else 1
        if not isinstance(value, list) or len(value) not in _SIDES:
            raise self.error(name, f"is {shown(value)}", "give a list of 4 rows of 4 numbers, or of 9 rows of 9")
        side = len(value)
        for index, row in enumerate(value, start=1):
            if not isinstance(row, list) or len(row) != side:
                raise self.error(name, f"has {shown(row)} as row {index}", f"give a list of {side} numbers")
            for number in row:
                if type(number) is not int or not least <= number <= side:
                    wanted = f"give whole numbers from {least} to {side}"
                    raise self.error(name, f"has {shown(number)} in row {index}", wanted)

    def _grid(self, name: str) -> Grid:
        return tuple(tuple(row) for row in self._values[name])

    def _check_pair(self, puzzle: Grid, solution: Grid) -> None:
        if len(puzzle) != len(solution):
            sizes = f"is {len(solution)} x {len(solution)} and the puzzle {len(puzzle)} x {len(puzzle)}"
            raise self.error("solution", sizes, "give grids of one size")
        if not is_solved(solution):
            raise self.error("solution", "does not hold each digit once in every row, column and box", "correct it")
        for row, (given, solved) in enumerate(zip(puzzle, solution, strict=True), start=1):
            for column, (left, right) in enumerate(zip(given, solved, strict=True), start=1):
                if left not in (0, right):
                    raise self.error("puzzle", f"has {left} at r{row}c{column}, its solution {right}", "correct one")

    def _equal(self, name: str, expected: str | int, why: str) -> None:
        if self._values[name] != expected:
            raise self.error(name, f"is {shown(self._values[name])}", f"it must be {expected}, {why}")


_SCHEMA: dict[str, Callable[[_Fields, str], None]] = {
    "id": _Fields.check_text,
    "source": _Fields.check_text,
    "split": _Fields.check_text,
    "mask_count": _Fields.check_number,
    "puzzle": _Fields.check_grid,
    "solution": _Fields.check_grid,
    "puzzle_compact": _Fields.check_text,
    "solution_compact": _Fields.check_text,
}
