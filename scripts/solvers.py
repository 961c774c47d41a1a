"""Solvers behind `scripts/ceilings.py`: the optimum of an instance, or the best that can be had in a few seconds.

Routes come from PyVRP, proofs from HiGHS through scipy. A solver works on scaled integers or within tolerances, so what
it returns is checked here and valued again in float64, from the numbers of the instance.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

Matrix = NDArray[np.float64]
Nodes = NDArray[np.int64]

ROUTE_SCALE = 1e7
"""Distances of the unit square times this are PyVRP's integers."""

MILP_SCALE = 1e3
"""HiGHS stops at an absolute gap of 1e-6 of the scaled objective: 1e-9 of ours."""


NEAR = 12
"""The relaxation of a tour starts with the edges from each node to so many of its nearest; others follow as needed."""


@dataclass(frozen=True)
class Solved:
    """Value of an instance, and whether nothing better exists (as far as HiGHS's tolerances go)."""

    value: float
    proven: bool


def tour(distances: Matrix, seconds: float, seed: int = 0) -> Solved:
    """Shortest closed tour: PyVRP's best of several starts, then a proof by HiGHS.

    Args:
        distances: symmetric, of shape (n, n), n >= 3.
        seconds: for all starts together; the proof may take ten times as long.
        seed: of the first start.
    """
    starts = 1 if len(distances) <= 50 else 2
    customers = np.zeros(len(distances) - 1, dtype=np.int64)
    found = [_routes(distances, customers, 0, seconds / starts, seed + start)[0] for start in range(starts)]
    known = min(found, key=lambda one: _length(one, distances))
    best = shortest_tour(distances, known, 10 * seconds)
    lengths = [_length(one, distances) for one in (known, best) if one is not None]
    return Solved(min(lengths), best is not None)


def vehicle_routes(distances: Matrix, demands: Nodes, capacity: int, seconds: float, seed: int = 0) -> Solved:
    """Cheapest routes from node 0 that serve every demand: PyVRP's best of two starts.

    Args:
        distances: symmetric, of shape (n + 1, n + 1), node 0 the depot.
        demands: of the customers, shape (n,).
        capacity: of each of any number of vehicles.
        seconds: for both starts together.
        seed: of the first start.
    """
    costs = []
    for start in range(2):
        routes = _routes(distances, demands, capacity, seconds / 2, seed + start)
        if any(demands[route[1:] - 1].sum() > capacity for route in routes):
            raise RuntimeError("PyVRP overloaded a vehicle; give it more seconds")
        costs.append(sum(_length(route, distances) for route in routes))
    return Solved(min(costs), False)


def _routes(distances: Matrix, demands: Nodes, capacity: int, seconds: float, seed: int) -> list[Nodes]:
    """PyVRP's routes, each from node 0; one vehicle without demands, else as many as there are customers."""
    import pyvrp
    from pyvrp.stop import MaxRuntime

    scaled = np.rint(distances * ROUTE_SCALE).astype(np.int64)
    np.fill_diagonal(scaled, 0)
    loads: list[list[int]] = [[int(demand)] if capacity else [] for demand in demands]
    vehicles = pyvrp.VehicleType(len(demands), [capacity]) if capacity else pyvrp.VehicleType(1)
    data = pyvrp.ProblemData(
        [pyvrp.Location(0, 0) for _ in range(len(demands) + 1)],
        [pyvrp.Client(1 + index, delivery=load) for index, load in enumerate(loads)],
        [pyvrp.Depot(0)],
        [vehicles],
        [scaled],
        [np.zeros_like(scaled)],
    )
    params = pyvrp.SolveParams(penalty=pyvrp.PenaltyParams(max_penalty=4 * ROUTE_SCALE))
    best = pyvrp.solve(data, MaxRuntime(seconds), seed=seed, collect_stats=False, params=params).best
    routes = [
        np.array([0, *(visit.idx + 1 for visit in route if visit.is_client())], dtype=np.int64)
        for route in best.routes()
    ]
    visited = np.sort(np.concatenate([route[1:] for route in routes]))
    if not np.array_equal(visited, np.arange(1, len(demands) + 1)):
        raise RuntimeError("PyVRP left a customer out")
    return routes


def _length(route: Nodes, distances: Matrix) -> float:
    return float(distances[route, np.roll(route, -1)].sum())


def shortest_tour(distances: Matrix, known: Nodes, seconds: float) -> Nodes | None:
    """The optimal tour by linear programming with subtour cuts (Dantzig, Fulkerson and Johnson 1954).

    The relaxation is cut until no subtour inequality is violated and no edge is missing from it. An edge whose reduced
    cost exceeds the gap to some limit is in no tour that short, so the others are solved in integers, again with cuts:
    for a limit a percent above the relaxation, where the optimum mostly lies, and else for the tour that is known.

    Args:
        distances: symmetric, of shape (n, n).
        known: any tour, of shape (n,); the shorter the faster.
        seconds: when to give up.

    Returns:
        The nodes in order, or None when time ran out.
    """
    end = time.monotonic() + seconds
    n = len(distances)
    heads, tails = np.triu_indices(n, 1)
    costs = distances[heads, tails] * MILP_SCALE
    rank = distances.argsort(axis=1).argsort(axis=1)
    near = np.minimum(rank, rank.T) <= NEAR
    near[known, np.roll(known, -1)] = near[np.roll(known, -1), known] = True
    used = near[heads, tails]
    cuts: list[NDArray[np.bool_]] = []
    while True:
        rows = _constraints(heads[used], tails[used], cuts, n)
        relaxed: Any = linprog(costs[used], **rows, bounds=(0, 1), method="highs-ds")
        if relaxed.status or time.monotonic() > end:
            return None
        found = list(_violated(heads[used], tails[used], relaxed.x, n))
        cuts += found
        if not found:
            reduced = _reduced(costs, heads, tails, cuts, relaxed)
            missing = ~used & (reduced < -1e-7)
            if not missing.any():
                break
            used |= missing
    most = _length(known, distances) * MILP_SCALE
    for limit in (min(1.01 * relaxed.fun, most), most):
        kept = relaxed.fun + reduced <= limit + 1e-5
        best = _in_integers(heads[kept], tails[kept], costs[kept], cuts, n, end)
        if best is not None and _length(best, distances) * MILP_SCALE <= limit + 1e-5:
            return best
    return None


def _reduced(costs: Matrix, heads: Nodes, tails: Nodes, cuts: list[NDArray[np.bool_]], relaxed: Any) -> Matrix:
    """Reduced costs of all edges, also of those that the relaxation left out."""
    at_nodes = relaxed.eqlin.marginals
    reduced = costs - at_nodes[heads] - at_nodes[tails]
    for side, marginal in zip(_smaller(cuts), relaxed.ineqlin.marginals, strict=True):
        if marginal:
            reduced -= marginal * (side[heads] & side[tails])
    return reduced


def _in_integers(
    heads: Nodes, tails: Nodes, costs: Matrix, cuts: list[NDArray[np.bool_]], n: int, end: float
) -> Nodes | None:
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return None
        rows = _constraints(heads, tails, cuts, n)
        limits = [LinearConstraint(rows["A_eq"], rows["b_eq"], rows["b_eq"])]
        if cuts:
            limits.append(LinearConstraint(rows["A_ub"], -np.inf, rows["b_ub"]))
        whole = _search(costs, limits, left)
        if whole.status:
            return None
        chosen = whole.x > 0.5
        parts, label = _parts(heads[chosen], tails[chosen], n)
        if parts == 1:
            return _in_order(heads[chosen], tails[chosen], n)
        cuts = cuts + [label == part for part in range(parts)]


def _search(costs: Matrix, limits: list[LinearConstraint], seconds: float, most: float = 1.0) -> Any:
    """HiGHS over whole numbers from 0 to `most`; status 0 when it has proven its answer."""
    options: Any = {"mip_rel_gap": 0.0, "time_limit": seconds}
    whole: Any = np.ones(len(costs), dtype=np.int64)
    return milp(costs, constraints=limits, bounds=Bounds(0, most), integrality=whole, options=options)


def _constraints(heads: Nodes, tails: Nodes, cuts: list[NDArray[np.bool_]], n: int) -> dict[str, Any]:
    """Two edges at each node; fewer edges than nodes within the smaller side of each cut."""
    edges = np.arange(len(heads))
    degree = coo_array((np.ones(2 * len(heads)), (np.r_[heads, tails], np.r_[edges, edges])), (n, len(heads)))
    rows: dict[str, Any] = {"A_eq": degree.tocsr(), "b_eq": np.full(n, 2.0)}
    if cuts:
        sides = _smaller(cuts)
        rows["A_ub"] = csr_array(np.array([side[heads] & side[tails] for side in sides], dtype=np.float64))
        rows["b_ub"] = np.array([side.sum() - 1.0 for side in sides])
    return rows


def _smaller(cuts: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    return [side if 2 * side.sum() <= len(side) else ~side for side in cuts]


def _parts(heads: Nodes, tails: Nodes, n: int) -> tuple[int, Nodes]:
    graph = coo_array((np.ones(len(heads)), (heads, tails)), (n, n))
    parts, label = connected_components(graph, directed=False)
    return int(parts), np.asarray(label, dtype=np.int64)


def _in_order(heads: Nodes, tails: Nodes, n: int) -> Nodes:
    """The nodes of a tour from its n edges."""
    near: list[list[int]] = [[] for _ in range(n)]
    for head, tail in zip(heads, tails, strict=True):
        near[head].append(int(tail))
        near[tail].append(int(head))
    nodes = [0, near[0][0]]
    while len(nodes) < n:
        first, second = near[nodes[-1]]
        nodes.append(second if first == nodes[-2] else first)
    if len(set(nodes)) < n:
        raise RuntimeError("HiGHS returned no tour")
    return np.array(nodes, dtype=np.int64)


def _violated(heads: Nodes, tails: Nodes, weights: Matrix, n: int) -> Iterator[NDArray[np.bool_]]:
    """Sets of nodes that fewer than two edges leave: the parts of the graph, or cuts by Stoer and Wagner (1997)."""
    chosen = weights > 1e-7
    parts, label = _parts(heads[chosen], tails[chosen], n)
    if parts > 1:
        yield from (label == part for part in range(parts))
        return
    graph = np.zeros((n, n))
    graph[heads, tails] = graph[tails, heads] = weights
    sides = np.eye(n, dtype=bool)
    alive = np.ones(n, dtype=bool)
    for left in range(n, 1, -1):
        pull = np.where(alive, graph[0], -np.inf)
        pull[0] = -np.inf
        before, last = 0, 0
        for _ in range(left - 1):
            before, last = last, int(np.argmax(pull))
            leaving = pull[last]
            pull += graph[last]
            pull[last] = -np.inf
        if leaving < 2 - 1e-6:
            yield sides[last].copy()
        graph[before] += graph[last]
        graph[:, before] += graph[:, last]
        graph[before, before] = 0
        sides[before] |= sides[last]
        alive[last] = False


def knapsack(weights: Matrix, values: Matrix, capacity: float, seconds: float) -> Solved:
    """Largest value of items that fit.

    HiGHS takes a weight of up to 1e-6 over the capacity for feasible. Such a set of items is forbidden and the search
    repeated, so what is left is the optimum of the instance as it stands.

    Args:
        weights: of shape (n,).
        values: of shape (n,).
        capacity: the largest total weight.
        seconds: for each search.

    Returns:
        The optimum, or an upper bound when time ran out.
    """
    limits = [LinearConstraint(weights[None], -np.inf, capacity)]
    while True:
        whole = _search(-values * MILP_SCALE, limits, seconds)
        if whole.status:
            return Solved(-float(whole.mip_dual_bound) / MILP_SCALE, False)
        taken = whole.x > 0.5
        if weights[taken].sum() <= capacity:
            return Solved(float(values[taken].sum()), True)
        limits.append(LinearConstraint(taken[None].astype(float), -np.inf, taken.sum() - 1))


def bins(sizes: Nodes, capacity: int, seconds: float, seed: int = 0) -> Solved:
    """Fewest bins: a packing that needs no more than a lower bound, else a search in integers, else the bound.

    The bound is the larger of L2 and that of the arc-flow model (Valerio de Carvalho 1999).

    Args:
        sizes: of the items, shape (n,).
        capacity: of a bin.
        seconds: for packing at random; the search in integers may take as long again.
        seed: of the packings.
    """
    costs, limits = _arc_flow(sizes, capacity)
    relaxed: Any = milp(costs, constraints=limits)
    assert relaxed.status == 0, relaxed.message
    lower = max(martello_toth(sizes, capacity), int(np.ceil(relaxed.fun - 1e-6)))
    generator = np.random.default_rng(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if _filled(sizes, capacity, generator) == lower:
            return Solved(float(lower), True)
    whole = _search(costs, limits, seconds, np.inf)
    if whole.status == 0:
        return Solved(float(round(whole.fun)), True)
    return Solved(float(lower), whole.x is not None and round(costs @ whole.x) == lower)


def _filled(sizes: Nodes, capacity: int, generator: np.random.Generator) -> int:
    """Bins used when each gets the largest item left and what fills it best (after Gupta and Ho 1999).

    Items to fill with are tried in order of size, blurred by a fifth of the capacity; the first perfect fit is taken.
    """
    left = np.bincount(sizes, minlength=capacity + 1).tolist()
    kinds = np.unique(sizes)
    smallest, used = int(kinds[0]), 0
    for largest in kinds[::-1].tolist():
        while left[largest]:
            blurred = generator.random(len(kinds)) * capacity / 5 - kinds
            left[largest] -= 1
            for size in _best_fill(capacity - largest, kinds[np.argsort(blurred)].tolist(), left, smallest):
                left[size] -= 1
            used += 1
    return used


def _best_fill(room: int, order: list[int], left: list[int], smallest: int) -> tuple[int, ...]:
    """The first sizes found, in that order, that fill the room completely, else those that fill it best."""
    best: tuple[int, tuple[int, ...]] = (room, ())

    def fill(room: int, place: int, taken: tuple[int, ...]) -> bool:
        nonlocal best
        if room < best[0]:
            best = (room, taken)
        if room >= smallest:
            for at in range(place, len(order)):
                size = order[at]
                if size <= room and taken.count(size) < left[size] and fill(room - size, at, (*taken, size)):
                    return True
        return room == 0

    fill(room, 0, ())
    return best[1]


def _arc_flow(sizes: Nodes, capacity: int) -> tuple[Matrix, list[LinearConstraint]]:
    """A bin is a path from 0 to the capacity whose arcs are items, largest first, then one arc of empty space."""
    kinds, counts = np.unique(sizes, return_counts=True)
    reached = {0}
    arcs: list[tuple[int, int, int]] = []
    for kind in range(len(kinds) - 1, -1, -1):
        size = int(kinds[kind])
        starts = set(reached)
        for start in sorted(reached):
            for copy in range(int(counts[kind])):
                if start + (copy + 1) * size > capacity:
                    break
                starts.add(start + (copy + 1) * size)
        arcs += [(start, start + size, kind) for start in sorted(starts) if start + size in starts]
        reached = starts
    arcs += [(start, capacity, -1) for start in sorted(reached - {0, capacity})]
    tails, heads, kind_of = (np.array(column) for column in zip(*arcs, strict=True))
    number = np.arange(len(arcs))
    ones = np.ones(len(arcs))
    flow = coo_array((np.r_[ones, -ones], (np.r_[heads, tails], np.r_[number, number])), (capacity + 1, len(arcs)))
    items = kind_of >= 0
    packed = coo_array((ones[items], (kind_of[items], number[items])), (len(kinds), len(arcs)))
    limits = [LinearConstraint(flow.tocsr()[1:capacity], 0, 0), LinearConstraint(packed.tocsr(), counts, np.inf)]
    return (tails == 0).astype(np.float64), limits


def martello_toth(sizes: Nodes, capacity: int) -> int:
    """The lower bound L2 on the number of bins (Martello and Toth 1990)."""
    best = 0
    for small in np.unique(np.r_[0, sizes[sizes <= capacity / 2]]):
        large = int((sizes > capacity - small).sum())
        middle = sizes[(sizes <= capacity - small) & (2 * sizes > capacity)]
        fill = int(sizes[(2 * sizes <= capacity) & (sizes >= small)].sum())
        room = len(middle) * capacity - int(middle.sum())
        best = max(best, large + len(middle) + max(0, -(-(fill - room) // capacity)))
    return best
