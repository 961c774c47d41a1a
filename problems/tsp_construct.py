"""Constructive travelling salesman: the candidate picks the next node of a tour, one call a step.

The instances are uniform in the unit square, the tour starts and ends at node 0. Only the tours leave the driver; the
lengths are computed from the instances by `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems import tours
from problems.base import Decisions, Function, InvalidSolution, Problem, WrongShape, as_node
from problems.instances import Sets, one_stream
from problems.references import key_of

MAX_CANDIDATES = 50

SETS = Sets(
    problem="tsp_construct",
    folder="tsp_constructive",
    draw=lambda generator, count, size: generator.random_sample((count, size, 2)),
    published=one_stream(
        1234,
        ("train", 50, 64),
        *(("val", size, 64) for size in (20, 50, 100, 200)),
        *(("test", size, 1000) for size in (20, 50, 100, 200)),
    ),
    default_size=50,
    default_count={"train": 64, "val": 64, "test": 64},
    seed=1234,
)

_SIGNATURE = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):"
_AMONG = "distance_matrix[unvisited_nodes][:, unvisited_nodes]"


def _seed(idea: str, *body: str) -> SeedHeuristic:
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="tsp_construct",
    description=(
        "Build a short round trip through all nodes step by step: "
        "given the current node, choose which unvisited node to go to next."
    ),
    function="select_next_node",
    arguments=("current_node", "destination_node", "unvisited_nodes", "distance_matrix"),
    signature=_SIGNATURE,
    docstring=(
        "current_node: id of the node the tour is at.\n"
        "destination_node: id of the node the tour started from and must return to at the end.\n"
        "unvisited_nodes: 1-D integer array of candidate ids, nearest to the current node first.\n"
        "distance_matrix: 2-D float array, distance_matrix[i][j] is the distance between nodes i and j.\n"
        "Returns the id of the next node, one of unvisited_nodes."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Look one step ahead: how far is the node that would follow?", f"ahead = np.sort({_AMONG}, axis=1)[:, 1]"),
        Idea("Visit isolated nodes early.", f"isolation = {_AMONG}.mean(axis=1)"),
        Idea(
            "Leave no far node behind: visit early what is far from some other node.", f"reach = {_AMONG}.max(axis=1)"
        ),
        Idea(
            "Go round the border: prefer nodes far from the centre.",
            "centre = distance_matrix[unvisited_nodes].mean(axis=1)",
        ),
        Idea(
            "Use savings: compare going on to a node with returning first.",
            "back = distance_matrix[destination_node][unvisited_nodes]",
        ),
        Idea(
            "Weigh the way back more towards the end of the tour.", "left = len(unvisited_nodes) / len(distance_matrix)"
        ),
        Idea("Choose among the few nearest nodes only.", "few = unvisited_nodes[:5]"),
        Idea("Prefer nodes with many near neighbours.", f"near_ones = ({_AMONG} < 0.2).sum(axis=1)"),
    ),
    seeds=(
        _seed("Go to the nearest unvisited node.", "return unvisited_nodes[0]"),
        _seed(
            "Go to a node that is near now but far from the destination.",
            "near = distance_matrix[current_node][unvisited_nodes]",
            "back = distance_matrix[destination_node][unvisited_nodes]",
            "score = near - 0.4 * back",
            "return unvisited_nodes[np.argmin(score)]",
        ),
        _seed(
            "Go to a near node that lies far from the other unvisited nodes.",
            "near = distance_matrix[current_node][unvisited_nodes]",
            "others = distance_matrix[unvisited_nodes][:, unvisited_nodes]",
            "score = near - 0.6 * others.mean(axis=1)",
            "return unvisited_nodes[np.argmin(score)]",
        ),
    ),
)


@dataclass(frozen=True)
class Cities:
    """One instance.

    Attributes:
        points: coordinates, float64 of shape (n, 2).
        distances: float64 of shape (n, n).
        order: for each node all nodes, nearest first; int64 of shape (n, n).
    """

    points: NDArray[np.float64]
    distances: NDArray[np.float64]
    order: NDArray[np.int64]


class TspConstruct(Problem):
    """The problem on one set of instances.

    Args:
        split: "train", "val" or "test".
        size: nodes of each instance, at least 3.
        n_instances: the first so many of the set.
        data: folder of published files instead of the documented seeds.

    Raises:
        UserError: a value is out of range, or the folder cannot be used.
    """

    name = "tsp_construct"
    measure = "tour length"
    sets = SETS

    def __init__(
        self, split: str = "train", size: int | None = None, n_instances: int | None = None, data: str | None = None
    ) -> None:
        if size is not None and size < 3:
            raise UserError(f"size of tsp_construct must be at least 3 nodes, not {size}.")
        self.instances = [_cities(points) for points in SETS.load(split, size, n_instances, data)]

    @property
    def task(self) -> Task:
        """What the model is told."""
        return TASK

    @property
    def n_calls(self) -> int:
        """Calls of a whole evaluation: the start is given and the last node forced."""
        return sum(len(instance.points) - 2 for instance in self.instances)

    def key(self, instance: Cities) -> str:
        """Of the coordinates."""
        return key_of(instance.points)

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Tour constructions, the best of them also improved by 2-opt."""
        return tours.BASELINES

    def solve(self, instance: Cities, function: Function) -> Decisions:
        """Build a tour with the candidate's function.

        Returns:
            Node ids in order of visit, int64 of shape (n,), node 0 first.

        Raises:
            BadReturn: the function returned no id, or one that was not offered.
        """
        tour = np.zeros(len(instance.points), dtype=np.int64)
        _build(tour, instance.distances.copy(), instance.order, function)
        return tour

    def score(self, instance: Cities, decisions: Decisions) -> float:
        """Length of the closed tour.

        Raises:
            WrongShape: not an integer array of shape (n,).
            InvalidSolution: the tour does not start at node 0, is no permutation, or takes a node not offered.
        """
        n = len(instance.points)
        if decisions.shape != (n,) or not np.issubdtype(decisions.dtype, np.signedinteger):
            raise WrongShape(f"the tour is {decisions.dtype} of shape {decisions.shape}, expected integers ({n},)")
        if decisions[0] != 0 or not np.array_equal(np.sort(decisions), np.arange(n)):
            raise InvalidSolution("the tour does not visit every node once, starting at node 0")
        if n - 1 > MAX_CANDIDATES and not _offered(decisions, instance.order):
            raise InvalidSolution(f"the tour takes a node that was not among the {MAX_CANDIDATES} nearest")
        return tours.length(decisions, instance.distances)


def _cities(points: NDArray[np.float64]) -> Cities:
    distances = tours.distance_matrix(points)
    order = np.argsort(distances, axis=-1, kind="stable")
    for array in (points, distances, order):
        array.flags.writeable = False
    return Cities(points, distances, order)


def _build(
    tour: NDArray[np.int64],
    distances: NDArray[np.float64],
    order: NDArray[np.int64],
    function: Function,
) -> None:
    """Fill one tour in place. `distances` is the candidate's own copy; `order` is never shown to it."""
    unvisited = np.ones(len(tour), dtype=bool)
    unvisited[0] = False
    current = 0
    for step in range(1, len(tour) - 1):
        nearest = order[current]
        offered = nearest[unvisited[nearest]][:MAX_CANDIDATES]
        value = function(current, 0, offered, distances)
        node = as_node(value, TASK.function)
        if not 0 <= node < len(tour) or not unvisited[node]:
            raise InvalidSolution(f"{TASK.function} returned {node}, which is no unvisited node (step {step})")
        if len(tour) - step > MAX_CANDIDATES and node not in nearest[unvisited[nearest]][:MAX_CANDIDATES]:
            raise InvalidSolution(f"{TASK.function} returned {node}, which was not offered (step {step})")
        unvisited[node] = False
        tour[step] = current = node
    tour[-1] = int(np.flatnonzero(unvisited)[0])


def _offered(tour: NDArray[np.int64], order: NDArray[np.int64]) -> bool:
    """Whether each step went to one of the nearest MAX_CANDIDATES unvisited nodes."""
    rank = np.argsort(order, axis=-1)
    ranks = rank[tour[:, None], tour[None, :]]
    chosen = ranks[np.arange(len(tour) - 1), np.arange(1, len(tour))]
    later = np.triu(np.ones(ranks.shape, dtype=bool), k=1)[:-1]
    nearer = (later & (ranks[:-1] < chosen[:, None])).sum(axis=1)
    return bool(np.all(nearer < MAX_CANDIDATES))
