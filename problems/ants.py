"""Ant colonies in compiled code: all ants of all iterations in one call that holds no lock, so threads run at once.

Random numbers come from the generator that is passed in and from nothing else; sums are taken in a fixed order and
rounded one by one. So a call gives the same value whatever runs beside it. The callers check what they pass.

Weights are kept as float64 whatever they are computed in. A row whose total is beyond the range of the type it was
computed in has no proportions, and ends the call with NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from problems.compiled import compiled

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]

_LARGEST_SINGLE = float(np.finfo(np.float32).max)
_LARGEST = float(np.finfo(np.float64).max)
_PHEROMONE_FLOOR = 1e-10


def seeds(evaluation_seed: int, size: int, count: int) -> list[int]:
    """Seeds of the instances of a set: evaluation_seed + 1000 * size + index.

    Raises:
        UserError: the evaluation seed is no whole number from 0, or too large for numpy.
    """
    last = 2**32 - 1 - 1000 * size - count
    if type(evaluation_seed) is not int or not 0 <= evaluation_seed <= last:
        raise UserError(f"evaluation_seed must be a whole number from 0 to {last}, not {evaluation_seed!r}.")
    return [evaluation_seed + 1000 * size + index for index in range(count)]


def stream(seed: int) -> np.random.Generator:
    """The random numbers of one instance."""
    return np.random.Generator(np.random.Philox(seed))


@compiled
def position(cumulative: Floats, count: int, drawn: float) -> int:
    """The first of `count` positions whose cumulative weight exceeds the drawn one. Weights of 0 are never met."""
    for k in range(count):
        if cumulative[k] > drawn:
            return k
    return count - 1


@compiled
def _walk_tour(
    path: Integers, weights: Floats, generator: np.random.Generator, offered: Integers, cumulative: Floats
) -> bool:
    """Fill a path of all nodes from a uniformly random start; False where a row's total is not finite."""
    n = len(path)
    for node in range(n):
        offered[node] = node
    k = int(generator.random() * n)
    for step in range(n):
        node = offered[k]
        path[step] = node
        count = n - 1 - step
        offered[k] = offered[count]
        row, total = weights[node], 0.0
        for k in range(count):
            total += row[offered[k]]
            cumulative[k] = total
        if not total <= _LARGEST_SINGLE:
            return False
        k = position(cumulative, count, generator.random() * total) if count > 1 else 0
    return True


@compiled
def mark_tours(pheromone: Singles, paths: Integers, costs: Floats, decay: float) -> None:
    """Let pheromone of shape (n, n) fade in place, then add 1 / cost to every edge of every path, both ways.

    Args:
        pheromone: float32 of shape (n, n); changed.
        paths: nodes in order of visit, one ant a row; the edge from the last to the first counts too.
        costs: of the paths, positive.
        decay: factor on what lies there.
    """
    n = len(pheromone)
    for i in range(n):
        for j in range(n):
            pheromone[i, j] *= np.float32(decay)
    for ant in range(len(paths)):
        deposit = np.float32(1.0) / np.float32(costs[ant])
        previous = paths[ant, n - 1]
        for node in paths[ant]:
            pheromone[previous, node] += deposit
            pheromone[node, previous] += deposit
            previous = node


@compiled
def shortest_tour(
    distances: Floats,
    heuristic: Singles,
    generator: np.random.Generator,
    n_ants: int,
    n_iterations: int,
    decay: float,
) -> float:
    """Length of the shortest tour that ants find; NaN where a row of weights has no finite total in float32.

    An ant starts anywhere and goes on in proportion to pheromone * heuristic, a float32 product, over the nodes it has
    not visited. After each iteration `mark_tours` works on the pheromone, which starts at 1.

    Args:
        distances: float64 of shape (n, n), n at least 2.
        heuristic: float32 of shape (n, n), positive.
        generator: the only source of randomness.
        n_ants: ants of an iteration.
        n_iterations: iterations.
        decay: factor on the pheromone after each iteration.
    """
    n = len(distances)
    pheromone, weights = np.ones((n, n), np.float32), np.empty((n, n))
    paths, costs = np.empty((n_ants, n), np.int64), np.empty(n_ants)
    offered, cumulative = np.empty(n, np.int64), np.empty(n)
    best = np.inf
    for _ in range(n_iterations):
        for i in range(n):
            for j in range(n):
                weights[i, j] = pheromone[i, j] * heuristic[i, j]
        for ant in range(n_ants):
            if not _walk_tour(paths[ant], weights, generator, offered, cumulative):
                return np.nan
            cost, previous = 0.0, paths[ant, n - 1]
            for node in paths[ant]:
                cost += distances[previous, node]
                previous = node
            costs[ant] = cost
            best = min(best, cost)
        mark_tours(pheromone, paths, costs, decay)
    return best


@compiled
def _walk_routes(
    path: Integers,
    weights: Floats,
    demands: Floats,
    capacity: float,
    generator: np.random.Generator,
    left: Integers,
    cumulative: Floats,
) -> int:
    """Fill a path from the depot to the depot and return its number of steps; 0 where a total is not finite."""
    count = len(demands) - 1
    for k in range(count):
        left[k] = k + 1
    node, used, step = 0, 0.0, 0
    path[0] = 0
    while count > 0 or node != 0:
        row = weights[node]
        home = row[0] if node != 0 else 0.0
        total, room = home, capacity - used
        for k in range(count):
            if demands[left[k]] <= room:
                total += row[left[k]]
            cumulative[k] = total
        if not total <= _LARGEST:
            return 0
        drawn = generator.random() * total
        if count == 0 or drawn < home or total == home:
            node, used = 0, 0.0
        else:
            k = position(cumulative, count, drawn)
            node = left[k]
            used += demands[node]
            count -= 1
            left[k] = left[count]
        step += 1
        path[step] = node
    return step


@compiled
def mark_routes(pheromone: Floats, paths: Integers, steps: Integers, costs: Floats, decay: float) -> None:
    """Let pheromone of shape (n, n) fade in place, then add 1 / cost to every step of every path, in its direction.

    What then lies below 1e-10 is lifted to it.

    Args:
        pheromone: float64 of shape (n, n); changed.
        paths: nodes in order of visit, one ant a row, node 0 at both ends.
        steps: how many steps each path has.
        costs: of the paths, positive.
        decay: factor on what lies there.
    """
    pheromone *= decay
    for ant in range(len(paths)):
        deposit = 1.0 / costs[ant]
        for step in range(steps[ant]):
            pheromone[paths[ant, step], paths[ant, step + 1]] += deposit
    n = len(pheromone)
    for i in range(n):
        for j in range(n):
            pheromone[i, j] = max(pheromone[i, j], _PHEROMONE_FLOOR)


@compiled
def route_costs(distances: Floats, paths: Integers, steps: Integers, costs: Floats) -> None:
    """Fill in the cost of each path: its length, and distances[0, 0] for each step that it is shorter than the longest.

    Ants that are done wait at the depot until the last one is, and waiting is charged as going from node 0 to node 0.
    """
    longest = steps.max()
    for ant in range(len(paths)):
        cost = 0.0
        for step in range(steps[ant]):
            cost += distances[paths[ant, step], paths[ant, step + 1]]
        costs[ant] = cost + (longest - steps[ant]) * distances[0, 0]


@compiled
def cheapest_routes(
    distances: Floats,
    heuristic: Floats,
    demands: Floats,
    capacity: float,
    generator: np.random.Generator,
    n_ants: int,
    n_iterations: int,
    decay: float,
) -> float:
    """Least cost, as `route_costs` has it, of routes that ants find; NaN where a row of weights has no finite total.

    An ant starts at the depot, node 0, and goes on in proportion to pheromone * heuristic over the customers that are
    left and fit, and the depot unless it is there. It is done when it is back and no customer is left. After each
    iteration `mark_routes` works on the pheromone, which starts at 1.

    Args:
        distances: float64 of shape (n, n).
        heuristic: float64 of shape (n, n), positive.
        demands: float64 of shape (n,), 0 at the depot, none above the capacity.
        capacity: of a vehicle.
        generator: the only source of randomness.
        n_ants: ants of an iteration.
        n_iterations: iterations.
        decay: factor on the pheromone after each iteration.
    """
    n = len(distances)
    pheromone = np.ones((n, n))
    paths, steps = np.zeros((n_ants, 2 * n), np.int64), np.empty(n_ants, np.int64)
    costs, left, cumulative = np.empty(n_ants), np.empty(n, np.int64), np.empty(n)
    best = np.inf
    for _ in range(n_iterations):
        weights = pheromone * heuristic
        for ant in range(n_ants):
            steps[ant] = _walk_routes(paths[ant], weights, demands, capacity, generator, left, cumulative)
            if steps[ant] == 0:
                return np.nan
        route_costs(distances, paths, steps, costs)
        best = min(best, costs.min())
        mark_routes(pheromone, paths, steps, costs, decay)
    return best
