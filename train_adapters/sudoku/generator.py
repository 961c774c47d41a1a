"""Draws puzzles, and draws the published ones byte for byte.

A solution is the cyclic pattern with its bands, the rows in each band, its stacks, the columns in each stack and its
digits shuffled; a puzzle blanks the first cells of a shuffled list. All splits come from one stream, one after the
other, so a split added at the end leaves the ones before it as they are.

Published, with seed 20260701: 128 rows `train`, then 128 rows `eval`, with 5, 10, 15 and 20 blanks in turn. Two
promises are added: a puzzle has exactly one solution, and no puzzle comes twice. A draw that breaks one is thrown away;
none of the published draws does, which is why they stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from operators.errors import UserError
from train_adapters.sudoku.grid import Grid, cells, check_box, replaced
from train_adapters.sudoku.rows import SudokuRow
from train_adapters.sudoku.solver import has_one_solution

PUBLISHED_SEED = 20260701
PUBLISHED_MASKS = (5, 10, 15, 20)
PUBLISHED_SPLITS = (("train", 128), ("eval", 128))

_T = TypeVar("_T")

_MOST_MASKS = {2: 12, 3: 50}
"""By box size: with more cells blanked at random, hardly any puzzle keeps a single solution."""
_MOST_DRAWS = 500


@dataclass(frozen=True)
class Recipe:
    """What to draw.

    Attributes:
        seed: of the one stream of all splits.
        box: box size; 3 for 9 x 9 grids, 2 for 4 x 4.
        masks: numbers of blank cells, taken in turn within each split.
        splits: names and numbers of rows, in the order they are drawn.
    """

    seed: int = PUBLISHED_SEED
    box: int = 3
    masks: tuple[int, ...] = PUBLISHED_MASKS
    splits: tuple[tuple[str, int], ...] = PUBLISHED_SPLITS

    def __post_init__(self) -> None:
        check_box(self.box)
        if type(self.seed) is not int or self.seed < 0:
            raise UserError(f"The seed of the puzzles must be a whole number of at least 0, not {self.seed!r}.")
        most = _MOST_MASKS[self.box]
        if not self.masks:
            raise UserError("masks is empty. Give at least one number of blank cells.")
        for mask_count in self.masks:
            if type(mask_count) is not int or not 1 <= mask_count <= most:
                raise UserError(
                    f"masks must be whole numbers from 1 to {most} for box size {self.box}, not {mask_count!r}."
                )
        names = [name for name, _ in self.splits]
        if len(set(names)) < len(names):
            raise UserError(f"The splits {', '.join(names)} name one of them twice. Give each its own name.")
        for name, count in self.splits:
            if type(count) is not int or count < 0:
                raise UserError(f"The split {name!r} must have a whole number of rows of at least 0, not {count!r}.")


def generate(recipe: Recipe) -> dict[str, list[SudokuRow]]:
    """The rows of every split.

    Raises:
        UserError: no new puzzle with a single solution was found: the numbers of blanks or of rows are too large.
    """
    stream, seen = random.Random(recipe.seed), set[Grid]()
    rows: dict[str, list[SudokuRow]] = {}
    for split, count in recipe.splits:
        rows[split] = []
        for index in range(count):
            masks = recipe.masks[index % len(recipe.masks)]
            puzzle, solution = _new_puzzle(stream, recipe.box, masks, seen)
            seen.add(puzzle)
            rows[split].append(SudokuRow(f"{split}-{index:06d}", split, puzzle, solution))
    return rows


def _new_puzzle(stream: random.Random, box: int, masks: int, seen: set[Grid]) -> tuple[Grid, Grid]:
    """A puzzle that is not in `seen` and has one solution, and that solution."""
    for _ in range(_MOST_DRAWS):
        solution = _solution(stream, box)
        puzzle = replaced(solution, _shuffled(stream, cells(box))[:masks], 0)
        if puzzle not in seen and has_one_solution(puzzle):
            return puzzle, solution
    raise UserError(
        f"No new puzzle of box size {box} with {masks} blank cells and one solution in {_MOST_DRAWS} draws. "
        "Ask for fewer blank cells or fewer rows."
    )


def _solution(stream: random.Random, box: int) -> Grid:
    side = box * box
    rows, columns = _order(stream, box), _order(stream, box)
    digits = _shuffled(stream, range(1, side + 1))
    return tuple(tuple(digits[(box * (row % box) + row // box + column) % side] for column in columns) for row in rows)


def _order(stream: random.Random, box: int) -> list[int]:
    """The lines of a grid with the bands shuffled, and the lines within each band."""
    return [band * box + line for band in _shuffled(stream, range(box)) for line in _shuffled(stream, range(box))]


def _shuffled(stream: random.Random, values: Iterable[_T]) -> list[_T]:
    ordered = list(values)
    stream.shuffle(ordered)
    return ordered
