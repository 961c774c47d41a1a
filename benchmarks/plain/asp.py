"""Symmetric admissible sets the plain way: an evaluator that filters all vectors, in Python, at each step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product

import numpy as np

from problems.asp_construct import AspConstruct

Row = tuple[int, ...]

TRIPLES = ((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 2, 1), (1, 1, 1), (2, 2, 2))
WEIGHTS = tuple(sum(x != 0 for x in triple) for triple in TRIPLES)


def rotations(triple: Row) -> set[Row]:
    """The different ways to turn a triple."""
    return {triple[k:] + triple[:k] for k in range(3)}


def tells_apart(values: tuple[int, ...]) -> bool:
    """Whether three vectors may be in one set that hold these values at some coordinate."""
    return sorted(values) in ([0, 1, 2], [0, 0, 1], [0, 0, 2])


def _is_close(classes: Row) -> bool:
    ways = product(*(rotations(TRIPLES[one]) for one in classes))
    return any(not any(map(tells_apart, zip(*way, strict=True))) for way in ways)


CLOSE = {classes for classes in combinations_with_replacement(range(7), 3) if _is_close(classes)}


def rows(n: int, w: int) -> list[Row]:
    """Classes of the triples of every vector of length n and weight w, in lexicographic order."""
    return [row for row in product(range(7), repeat=n // 3) if sum(WEIGHTS[one] for one in row) == w]


def vector(row: Row) -> Row:
    """The vector itself."""
    return tuple(x for one in row for x in TRIPLES[one])


def expanded(kept: list[Row]) -> list[Row]:
    """All rotations, triple by triple, of all vectors."""
    return [sum(way, ()) for row in kept for way in product(*(sorted(rotations(TRIPLES[one])) for one in row))]


def build(n: int, w: int, function: Callable[..., float]) -> list[Row]:
    """The greedy choice by `priority`, one row for each family of rotations."""
    left = rows(n, w)
    priorities = np.array([function(vector(row), n, w) for row in left], dtype=np.float64)
    kept: list[Row] = []
    while left:
        new = left[int(np.argmax(priorities))]
        alive = [place for place, row in enumerate(left) if _stays(row, new, kept)]
        left, priorities = [left[place] for place in alive], priorities[alive]
        kept.append(new)
    return kept


def set_size(n: int, w: int, function: Callable[..., float]) -> int:
    """Number of vectors in the set that `priority` leads to, rotations included."""
    return len(expanded(build(n, w, function)))


def evaluate(problem: AspConstruct, function: Callable[..., float]) -> float:
    """Mean set size over the instances."""
    return float(np.mean([set_size(one.n, one.w, function) for one in problem.instances]))


def _stays(row: Row, new: Row, kept: list[Row]) -> bool:
    """Whether a vector may still be added once the new one is in the set."""
    if all(WEIGHTS[x] <= WEIGHTS[y] for x, y in zip(new, row, strict=True)):
        return False
    if all(WEIGHTS[x] >= WEIGHTS[y] for x, y in zip(new, row, strict=True)):
        return False
    return not any(all(tuple(sorted(x)) in CLOSE for x in zip(other, new, row, strict=True)) for other in kept)
