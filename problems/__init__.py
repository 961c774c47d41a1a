"""Heuristic-design problems: what a candidate must return, how it is checked and scored."""

from problems.base import BadReturn, InvalidSolution, NotFinite, Problem, WrongShape, as_matrix, as_node, as_real

__all__ = ["BadReturn", "InvalidSolution", "NotFinite", "Problem", "WrongShape", "as_matrix", "as_node", "as_real"]
