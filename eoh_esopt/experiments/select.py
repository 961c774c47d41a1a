"""What the command line says of a sweep: which cells to run, and settings for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from eoh_esopt.experiments.settings_files import Place, checked_settings, nearest, read_value
from eoh_esopt.experiments.sweep import Cell
from operators.errors import UserError


def select(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """The cells that one of the patterns holds for, in their order; all of them where there is no pattern.

    Args:
        cells: of the sweep.
        patterns: shell patterns of a cell's whole name, or of one part of it: task, arm or seed-SEED.

    Raises:
        UserError: a pattern holds for no cell.
    """
    for pattern in patterns:
        if not any(_holds(pattern, cell) for cell in cells):
            names = {part for cell in cells for part in (cell.name, *cell.folder.parts)}
            raise UserError(f"--only {pattern!r} is no cell of the sweep. {nearest(pattern, names)}")
    return [cell for cell in cells if not patterns or any(_holds(pattern, cell) for pattern in patterns)]


def _holds(pattern: str, cell: Cell) -> bool:
    return any(fnmatchcase(name, pattern) for name in (cell.name, *cell.folder.parts))


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """Settings from KEY=VALUE; values are written as in TOML, and a text may go without quotes.

    Raises:
        UserError: one is of another form, unknown, or of another kind.
    """
    table: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals:
            raise UserError(f"--set {one!r} has no value. Write it as KEY=VALUE, such as budget=200.")
        table[key] = read_value(value)
    return checked_settings(table, Place(Path("--set")))
