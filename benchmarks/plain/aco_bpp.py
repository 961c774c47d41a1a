"""Ants for bin packing the plain way: numpy, one ant after the other, item by item."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from problems.aco_bpp import CAPACITY, DECAY, N_ANTS, N_ITERATIONS, N_PACKINGS, AcoBpp

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Choose = Callable[[Floats, NDArray[np.bool_]], int]
"""(values of all items, which of them may be taken) -> an item."""


def first_best(values: Floats, allowed: NDArray[np.bool_]) -> int:
    """The greedy choice."""
    return int(np.argmax(values * allowed))


def in_proportion(generator: np.random.Generator) -> Choose:
    """The choice of an ant."""

    def choose(values: Floats, allowed: NDArray[np.bool_]) -> int:
        cumulative = np.cumsum(values * allowed)
        return int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))

    return choose


def pack(
    affinity: Floats, sizes: Integers, capacity: int, choose: Choose, open_with: Callable[[Integers], int]
) -> Integers:
    """The bin of each item, int64 of shape (n,).

    Args:
        affinity: of item j to a bin that holds i, shape (n, n).
        sizes: of the items, shape (n,).
        capacity: of a bin.
        choose: an item for a bin that is begun.
        open_with: one of the items that are left, for a new bin.
    """
    bins = np.full(len(sizes), -1)
    number, room = -1, 0
    while (bins < 0).any():
        allowed = (bins < 0) & (sizes <= room)
        inside = bins == number
        if number < 0 or not allowed.any():
            item = open_with(np.flatnonzero(bins < 0))
            number, room = number + 1, capacity
        else:
            item = choose(affinity[inside].sum(axis=0) / inside.sum() + 1e-5, allowed)
        bins[item] = number
        room -= int(sizes[item])
    return bins


def fitness_of(bins: Integers, sizes: Integers, capacity: int) -> float:
    """Mean of the bins' squared degrees of filling."""
    return float(np.mean((np.bincount(bins, weights=sizes) / capacity) ** 2))


def mark(pheromone: Floats, packings: list[Integers], fitness: list[float], decay: float) -> None:
    """Fade the pheromone in place, and add each packing's share to the pairs of items in one bin."""
    deposit = np.zeros_like(pheromone)
    for bins, value in zip(packings, fitness, strict=True):
        deposit[bins[:, None] == bins[None]] += value / len(packings)
    pheromone *= decay
    pheromone += deposit


def fewest_greedy(heuristic: Floats, sizes: Integers, capacity: int, seed: int, n_packings: int = N_PACKINGS) -> int:
    """Fewest bins of so many greedy packings."""
    generator = np.random.default_rng(seed)
    packings = (pack(heuristic, sizes, capacity, first_best, generator.choice) for _ in range(n_packings))
    return min(int(bins.max()) + 1 for bins in packings)


def fewest(
    heuristic: Floats,
    sizes: Integers,
    capacity: int,
    seed: int,
    n_ants: int = N_ANTS,
    n_iterations: int = N_ITERATIONS,
    decay: float = DECAY,
) -> int:
    """Fewest bins that ants find."""
    generator = np.random.default_rng(seed)
    choose = in_proportion(generator)
    pheromone, best = np.ones_like(heuristic), len(sizes)
    for _ in range(n_iterations):
        packings = [pack(pheromone * heuristic, sizes, capacity, choose, generator.choice) for _ in range(n_ants)]
        best = min(best, *(int(bins.max()) + 1 for bins in packings))
        mark(pheromone, packings, [fitness_of(bins, sizes, capacity) for bins in packings], decay)
    return best


def normalised(matrix: object) -> Floats:
    """What a candidate returned, clipped and divided by its maximum."""
    heuristic = np.clip(np.asarray(matrix, dtype=np.float64), 1e-6, 1e6)
    heuristic /= heuristic.max()
    return np.maximum(heuristic, 1e-6)


def evaluate(problem: AcoBpp, function: Callable[..., object]) -> float:
    """Mean number of bins over the instances of a training set."""
    heuristics = [normalised(function(one.sizes.copy(), CAPACITY)) for one in problem.instances]
    return float(
        np.mean(
            [
                fewest_greedy(matrix, one.sizes, CAPACITY, one.seed)
                for matrix, one in zip(heuristics, problem.instances, strict=True)
            ]
        )
    )
