"""What a move may do and what a board is worth, as published and with two holes closed.

Published: any reply with three digits somewhere in it counts as a move, and a cell stays as it was first filled, so
one wrong digit loses the episode although most of its turns are left. Neither asks for digits that fit: only the
finished board is judged.
Strict: a move must be stated as a command, and a cell that the agent filled may be set again; the episode then goes on
until the board is solved.
"""

from __future__ import annotations

from dataclasses import dataclass

from operators.errors import UserError
from train_adapters.sudoku.grid import Cell, Grid, blanks, box_of, cells, is_solved

TURNS_PER_MASK = 3


@dataclass(frozen=True)
class Move:
    """A digit for a cell, as the agent says it: row and column from 1, and nothing promised about their size."""

    row: int
    column: int
    value: int


@dataclass(frozen=True)
class Rules:
    """The two points in which the variants differ.

    Attributes:
        name: as users give it.
        reads_prose: whether a move may be read from digits anywhere in a reply.
        refills: whether a cell that the agent filled may be set again.
    """

    name: str
    reads_prose: bool
    refills: bool


PUBLISHED = Rules("published", reads_prose=True, refills=False)
STRICT = Rules("strict", reads_prose=False, refills=True)


def rules_named(name: str) -> Rules:
    """The rules of that name.

    Raises:
        UserError: there are none.
    """
    for rules in (PUBLISHED, STRICT):
        if rules.name == name:
            return rules
    raise UserError(f"Unknown rules {name!r}. Choose {PUBLISHED.name!r} or {STRICT.name!r}.")


def most_turns(puzzle: Grid) -> int:
    """Turns of an episode, legal moves or not: three for each blank cell."""
    return TURNS_PER_MASK * len(blanks(puzzle))


def filled(puzzle: Grid, board: Grid) -> list[Cell]:
    """The cells that the agent has filled, row by row."""
    every = cells(box_of(puzzle))
    return [(row, column) for row, column in every if board[row][column] and not puzzle[row][column]]


def refusal(puzzle: Grid, board: Grid, move: Move, rules: Rules) -> str:
    """Why a move is illegal, as a sentence for the agent; empty when it is legal."""
    side = len(puzzle)
    if not all(1 <= number <= side for number in (move.row, move.column, move.value)):
        return f"Row, column and value must be whole numbers from 1 to {side}."
    name = f"r{move.row}c{move.column}"
    if puzzle[move.row - 1][move.column - 1]:
        return f"{name} is given and cannot be changed."
    if board[move.row - 1][move.column - 1] and not rules.refills:
        return f"{name} has been filled already and cannot be changed."
    return ""


def is_over(board: Grid, rules: Rules) -> bool:
    """Whether the board ends the episode: when it is full, or with refills when it is solved."""
    return is_solved(board) if rules.refills else not blanks(board)


def reward(puzzle: Grid, board: Grid) -> float:
    """1 for a board that keeps the given cells and holds each digit once in every unit, else 0."""
    kept = all(
        board[row][column] == puzzle[row][column] or not puzzle[row][column] for row, column in cells(box_of(puzzle))
    )
    return 1.0 if kept and is_solved(board) else 0.0
