"""Sudoku played one cell a turn: the task family with a horizon that the number of blank cells controls."""

from train_adapters.sudoku.adapter import SudokuAdapter, make_adapter

__all__ = ["SudokuAdapter", "make_adapter"]
