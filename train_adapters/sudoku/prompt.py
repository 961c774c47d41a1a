"""The user turn: the rules of the game, what became of the last turn, the puzzle, the board and the blank cells."""

from __future__ import annotations

from collections.abc import Sequence

from train_adapters.sudoku.environment import Observation
from train_adapters.sudoku.grid import Cell, Grid, blanks, box_of
from train_adapters.sudoku.rules import Rules, filled


def prompt(seen: Observation, rules: Rules) -> str:
    """The text for one turn. It says all there is to know: no earlier turn is shown to the model."""
    parts = [_rules(box_of(seen.puzzle), rules)]
    if seen.feedback:
        parts.append(f"Last turn: {seen.feedback}")
    empty = blanks(seen.board)
    parts += [
        f"Puzzle as given, {len(blanks(seen.puzzle))} blank cells:\n{drawn(seen.puzzle)}",
        f"Board now, turn {seen.turn}, {len(empty)} blank cells left:\n{drawn(seen.board)}",
        f"Blank cells: {_names(empty)}",
    ]
    if rules.refills:
        parts.append(f"Cells that you filled and may set again: {_names(filled(seen.puzzle, seen.board))}")
    if not empty:
        parts.append("The board is full, but a row, column or box holds a digit twice. Set a cell again that is wrong.")
    return "\n\n".join(parts) + "\n"


def drawn(grid: Grid) -> str:
    """The grid with its rows and columns named and its boxes set apart; '.' for a blank."""
    side, box = len(grid), box_of(grid)
    lines = ["     " + _in_boxes([f"c{column + 1}" for column in range(side)], box)]
    for index, row in enumerate(grid):
        if index and index % box == 0:
            lines.append("     " + "+".join(["-" * (3 * box)] * box))
        lines.append(f"r{index + 1}:  " + _in_boxes([f"{value or '.'} " for value in row], box))
    return "\n".join(line.rstrip() for line in lines)


def _rules(box: int, rules: Rules) -> str:
    side = box * box
    again = (
        "A cell that you filled may be set again. " if rules.refills else "A cell that has been set stays as it is. "
    )
    return (
        f"You play Sudoku on a {side} x {side} board and set one cell each turn. Rows are r1 to r{side} from the top, "
        f"columns c1 to c{side} from the left; bars and dashes set the {box} x {box} boxes apart. On a solved board "
        f"every row, every column and every box holds each digit from 1 to {side} once. The cells of the given puzzle "
        f"stay as they are. {again}Choose a cell from the lists below.\n"
        "Answer with exactly one line, without reasoning, explanation or code block:\n"
        "set <row> <col> <value>"
    )


def _in_boxes(values: Sequence[str], box: int) -> str:
    groups = [" ".join(values[start : start + box]) for start in range(0, len(values), box)]
    return " | ".join(groups)


def _names(places: Sequence[Cell]) -> str:
    return ", ".join(f"r{row + 1}c{column + 1}" for row, column in places) or "none"
