"""Sudoku grids of box size 2 (4 x 4) and 3 (9 x 9): what a grid is, its units, and when it is solved.

A grid is a tuple of rows of whole numbers, 0 for a blank cell; the box size follows from its side.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product

from operators.errors import UserError

Grid = tuple[tuple[int, ...], ...]
Cell = tuple[int, int]
"""Row and column, both from 0."""

BOX_SIZES = (2, 3)
"""Larger boxes would need digits of two characters, which neither the drawings nor the parser have."""


def check_box(box: int) -> None:
    """Refuse a box size that is not supported.

    Raises:
        UserError: `box` is neither 2 nor 3.
    """
    if type(box) is not int or box not in BOX_SIZES:
        raise UserError(f"The box size must be 2 (a 4 x 4 grid) or 3 (a 9 x 9 grid), not {box!r}.")


def box_of(grid: Grid) -> int:
    """Box size of a grid: the root of its side."""
    return {box * box: box for box in BOX_SIZES}[len(grid)]


@cache
def cells(box: int) -> tuple[Cell, ...]:
    """All cells, row by row."""
    return tuple(product(range(box * box), range(box * box)))


@cache
def units(box: int) -> tuple[tuple[Cell, ...], ...]:
    """Every row, column and box as the cells in it: three times the side."""
    side = range(box * box)
    rows = [tuple((row, column) for column in side) for row in side]
    columns = [tuple((row, column) for row in side) for column in side]
    boxes = [
        tuple((top + row, left + column) for row in range(box) for column in range(box))
        for top, left in product(side[::box], repeat=2)
    ]
    return tuple(rows + columns + boxes)


def blanks(grid: Grid) -> list[Cell]:
    """The blank cells, row by row."""
    return [(row, column) for row, column in cells(box_of(grid)) if grid[row][column] == 0]


def replaced(grid: Grid, places: Iterable[Cell], value: int) -> Grid:
    """The grid with `value` in each of `places`."""
    changed = [list(row) for row in grid]
    for row, column in places:
        changed[row][column] = value
    return tuple(tuple(row) for row in changed)


def is_solved(grid: Grid) -> bool:
    """Whether every row, column and box holds each digit once."""
    box = box_of(grid)
    digits = set(range(1, box * box + 1))
    return all({grid[row][column] for row, column in unit} == digits for unit in units(box))


def compact(grid: Grid) -> str:
    """The grid as one character a cell, row by row; '.' for a blank."""
    return "".join(str(value or ".") for row in grid for value in row)


def from_compact(text: str) -> Grid:
    """The grid that `compact` wrote."""
    side = {box**4: box * box for box in BOX_SIZES}[len(text)]
    values = [0 if character == "." else int(character) for character in text]
    return tuple(tuple(values[start : start + side]) for start in range(0, len(values), side))
