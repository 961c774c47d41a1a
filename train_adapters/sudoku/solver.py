"""How many solutions a puzzle has: depth-first search on bit masks, the cell with the fewest candidates first."""

from __future__ import annotations

from train_adapters.sudoku.grid import Cell, Grid, blanks, box_of, units


def has_one_solution(puzzle: Grid) -> bool:
    """Whether the puzzle can be completed in exactly one way."""
    return count_solutions(puzzle, limit=2) == 1


def count_solutions(puzzle: Grid, limit: int) -> int:
    """Number of completions, counted up to `limit`; 0 when two given digits clash."""
    used = _Used(box_of(puzzle))
    for row, values in enumerate(puzzle):
        for column, value in enumerate(values):
            if value and not used.take((row, column), 1 << value):
                return 0
    return _count(used, blanks(puzzle), limit)


class _Used:
    """The digits that each row, column and box already holds: bit d of a mask stands for digit d."""

    def __init__(self, box: int) -> None:
        self._masks = [0] * len(units(box))
        self._places: dict[Cell, list[int]] = {}
        for index, unit in enumerate(units(box)):
            for cell in unit:
                self._places.setdefault(cell, []).append(index)
        self._all: int = 2 ** (box * box + 1) - 2

    def candidates(self, cell: Cell) -> int:
        first, second, third = self._places[cell]
        return self._all & ~(self._masks[first] | self._masks[second] | self._masks[third])

    def take(self, cell: Cell, bit: int) -> bool:
        """Put a digit down; False, and nothing changed, where it would clash."""
        if not self.candidates(cell) & bit:
            return False
        self._flip(cell, bit)
        return True

    def give_back(self, cell: Cell, bit: int) -> None:
        self._flip(cell, bit)

    def _flip(self, cell: Cell, bit: int) -> None:
        for place in self._places[cell]:
            self._masks[place] ^= bit


def _count(used: _Used, empty: list[Cell], limit: int) -> int:
    if not empty:
        return 1
    cell = min(empty, key=lambda one: used.candidates(one).bit_count())
    rest = [one for one in empty if one != cell]
    candidates, found = used.candidates(cell), 0
    while candidates and found < limit:
        bit = candidates & -candidates
        used.take(cell, bit)
        found += _count(used, rest, limit - found)
        used.give_back(cell, bit)
        candidates ^= bit
    return found
