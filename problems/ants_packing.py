"""Ants that pack bins, in compiled code under the same terms as `problems.ants`.

Each step looks at all items, packed or not: without branches that is faster than keeping lists of what fits.
"""

from __future__ import annotations

import numpy as np

from problems.ants import Floats, Integers, position
from problems.compiled import compiled

_EVEN_CHANCE = 1e-5  # what every item that fits has in addition to its mean affinity


@compiled
def _weigh(values: Floats, sums: Floats, row: Floats, open_sizes: Integers, room: int, n_items: int) -> None:
    """Add the row of the bin's n_items-th item to the sums, and value all items: 0 for what is packed or too large."""
    for item in range(len(row)):
        total = row[item] + (sums[item] if n_items > 1 else 0.0)
        sums[item] = total
        values[item] = total / n_items + _EVEN_CHANCE if open_sizes[item] <= room else 0.0


@compiled
def _best(values: Floats) -> int:
    """The first item of the highest value; -1 where all are 0."""
    bits = values.view(np.int64)  # in the same order as the values, which are not negative, and faster to compare
    highest = np.int64(0)
    for item in range(len(bits)):
        highest = max(highest, bits[item])
    item = 0 if highest > 0 else -1
    while highest > 0 and bits[item] != highest:
        item += 1
    return item


@compiled
def _drawn(values: Floats, offered: Integers, cumulative: Floats, generator: np.random.Generator) -> int:
    """An item drawn in proportion to the values; -1 where all are 0."""
    count, total = 0, 0.0
    for item in range(len(values)):
        offered[count] = item
        count += int(values[item] > 0.0)
    for k in range(count):
        total += values[offered[k]]
        cumulative[k] = total
    return offered[position(cumulative, count, generator.random() * total)] if count > 0 else -1


@compiled
def pack(
    bins: Integers,
    order: Integers,
    affinity: Floats,
    sizes: Integers,
    capacity: int,
    greedy: bool,
    generator: np.random.Generator,
) -> tuple[int, float]:
    """Pack all items, bin after bin: a uniformly random item, then by affinity to what lies there until nothing fits.

    Args:
        bins: filled with the number of each item's bin, int64 of shape (n,).
        order: filled with the items in the order they were packed, int64 of shape (n,).
        affinity: positive, float64 of shape (n, n); affinity[i, j] is that of item j to a bin that holds i.
        sizes: of the items, int64 of shape (n,), none above the capacity.
        capacity: of a bin.
        greedy: take the first item of the highest mean affinity, instead of drawing in proportion.
        generator: the only source of randomness.

    Returns:
        The number of bins, and the mean of their squared degrees of filling.
    """
    n = len(sizes)
    left, place, open_sizes, smallest = np.arange(n), np.arange(n), sizes.copy(), sizes.min()
    sums, values, offered, cumulative = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n)
    n_left, number, squares = n, 0, 0.0
    while n_left > 0:
        item, room, n_items = left[int(generator.random() * n_left)], capacity, 0
        while item >= 0:
            bins[item], order[n - n_left] = number, item
            room, n_items, n_left = room - sizes[item], n_items + 1, n_left - 1
            open_sizes[item], last = capacity + 1, left[n_left]
            left[place[item]], place[last] = last, place[item]
            if room < smallest:
                break
            _weigh(values, sums, affinity[item], open_sizes, room, n_items)
            item = _best(values) if greedy else _drawn(values, offered, cumulative, generator)
        number += 1
        squares += ((capacity - room) / capacity) ** 2
    return number, squares / number


@compiled
def fewest_bins_greedy(
    heuristic: Floats, sizes: Integers, capacity: int, generator: np.random.Generator, n_packings: int
) -> int:
    """Fewest bins of so many greedy packings by the heuristic alone.

    Args:
        heuristic: positive, float64 of shape (n, n); heuristic[i, j] is the affinity of item j to a bin that holds i.
        sizes: of the items, int64 of shape (n,), none above the capacity.
        capacity: of a bin.
        generator: the only source of randomness.
        n_packings: packings.
    """
    bins, order = np.empty_like(sizes), np.empty_like(sizes)
    best = len(sizes)
    for _ in range(n_packings):
        best = min(best, pack(bins, order, heuristic, sizes, capacity, True, generator)[0])
    return best


@compiled
def mark_bins(pheromone: Floats, orders: Integers, bins: Integers, fitness: Floats, decay: float) -> None:
    """Let pheromone of shape (n, n) fade in place, then add what the ants found to each pair of items in one bin.

    A pair of an item with itself counts as well.

    Args:
        pheromone: float64 of shape (n, n); changed.
        orders: items in the order they were packed, one ant a row, bin after bin.
        bins: number of each item's bin, one ant a row.
        fitness: of the packings; each adds its own divided by the number of ants.
        decay: factor on what lies there.
    """
    pheromone *= decay
    n_ants, n = orders.shape
    for ant in range(n_ants):
        deposit, first = fitness[ant] / n_ants, 0
        for k in range(n):
            item = orders[ant, k]
            if bins[ant, item] != bins[ant, orders[ant, first]]:
                first = k
            pheromone[item, item] += deposit
            for earlier in orders[ant, first:k]:
                pheromone[item, earlier] += deposit
                pheromone[earlier, item] += deposit


@compiled
def fewest_bins(
    heuristic: Floats,
    sizes: Integers,
    capacity: int,
    generator: np.random.Generator,
    n_ants: int,
    n_iterations: int,
    decay: float,
) -> int:
    """Fewest bins that ants find, which draw items by pheromone * heuristic.

    After each iteration `mark_bins` works on the pheromone, which starts at 1.

    Args:
        heuristic: positive, float64 of shape (n, n); heuristic[i, j] is the affinity of item j to a bin that holds i.
        sizes: of the items, int64 of shape (n,), none above the capacity.
        capacity: of a bin.
        generator: the only source of randomness.
        n_ants: ants of an iteration.
        n_iterations: iterations.
        decay: factor on the pheromone after each iteration.
    """
    n = len(sizes)
    pheromone = np.ones((n, n))
    bins, orders, fitness = np.empty((n_ants, n), np.int64), np.empty((n_ants, n), np.int64), np.empty(n_ants)
    best = n
    for _ in range(n_iterations):
        affinity = pheromone * heuristic
        for ant in range(n_ants):
            found = pack(bins[ant], orders[ant], affinity, sizes, capacity, False, generator)
            best, fitness[ant] = min(best, found[0]), found[1]
        mark_bins(pheromone, orders, bins, fitness, decay)
    return best
