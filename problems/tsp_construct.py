"""Constructive travelling salesman: the candidate picks the next node of a tour, one call a step.

The instances are uniform in the unit square, the tour starts and ends at node 0. Only the tours leave the driver; the
lengths are computed from the instances by `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems.base import Decisions, InvalidSolution, Progress, WrongShape, as_node

N_INSTANCES, N_NODES, SEED = 64, 50, 1234
MAX_CANDIDATES = 50

OPTIMUM = 5.7106
"""Mean length on the default set. PyVRP, long runs: near-proven, no tour known to be shorter on any instance."""

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


class TspConstruct:
    """The problem on `n_instances` random instances of `n_nodes` nodes.

    Args:
        n_instances: number of instances, at least 1.
        n_nodes: nodes of each instance, at least 3.
        seed: of numpy's legacy generator; the defaults give the published training set.

    Attributes:
        instances: coordinates, float64 of shape (n_instances, n_nodes, 2), read-only.

    Raises:
        UserError: a size is too small or the seed is outside 0 .. 2**32 - 1.
    """

    def __init__(self, n_instances: int = N_INSTANCES, n_nodes: int = N_NODES, seed: int = SEED) -> None:
        if n_instances < 1:
            raise UserError(f"n_instances of tsp_construct must be at least 1, not {n_instances}.")
        if n_nodes < 3:
            raise UserError(f"n_nodes of tsp_construct must be at least 3, not {n_nodes}.")
        if not 0 <= seed < 2**32:
            raise UserError(f"seed of tsp_construct must lie in 0 .. 4294967295, not {seed}.")
        generator = np.random.RandomState(seed)
        self.instances: NDArray[np.float64] = generator.random_sample((n_instances, n_nodes, 2))
        gaps = self.instances[:, :, None, :] - self.instances[:, None, :, :]
        self._distances: NDArray[np.float64] = np.sqrt((gaps**2).sum(axis=-1))
        self._order: NDArray[np.int64] = np.argsort(self._distances, axis=-1, kind="stable")
        for array in (self.instances, self._distances, self._order):
            array.flags.writeable = False
        self._default = (n_instances, n_nodes, seed) == (N_INSTANCES, N_NODES, SEED)

    @property
    def task(self) -> Task:
        """What the model is told."""
        return TASK

    @property
    def n_calls(self) -> int:
        """Calls of a whole evaluation: the start is given and the last node forced."""
        n_instances, n_nodes = self._distances.shape[:2]
        return int(n_instances * (n_nodes - 2))

    @property
    def references(self) -> Mapping[str, float]:
        """Mean tour length of the nearest neighbour rule and, on the default set, of the optimum."""
        tours = self.solve(lambda current, destination, unvisited, distances: unvisited[0], Progress())
        references = {"nearest neighbour": float(np.mean(self.score(tours)))}
        if self._default:
            references["optimum"] = OPTIMUM
        return MappingProxyType(references)

    def solve(self, function: Callable[..., object], progress: Progress) -> Decisions:
        """Build one tour for each instance with the candidate's function.

        Returns:
            Node ids in order of visit, int64 of shape (n_instances, n_nodes), the first column 0.

        Raises:
            BadReturn: the function returned no id, or one that was not offered.
        """
        tours = np.zeros(self.instances.shape[:2], dtype=np.int64)
        for tour, distances, order in zip(tours, self._distances, self._order, strict=True):
            _build(tour, distances.copy(), order, function, progress)
        return tours

    def score(self, decisions: Decisions) -> tuple[float, ...]:
        """Length of each tour.

        Args:
            decisions: as `solve` returns them, of any origin.

        Raises:
            WrongShape: not an integer array of shape (n_instances, n_nodes).
            InvalidSolution: a tour does not start at node 0, is no permutation, or takes a node not offered.
        """
        shape = self.instances.shape[:2]
        if decisions.shape != shape or not np.issubdtype(decisions.dtype, np.signedinteger):
            raise WrongShape(f"tours are {decisions.dtype} of shape {decisions.shape}, expected integers {shape}")
        nodes = np.arange(shape[1])
        for index, tour in enumerate(decisions):
            if tour[0] != 0 or not np.array_equal(np.sort(tour), nodes):
                raise InvalidSolution(f"tour {index} does not visit every node once, starting at node 0")
            if shape[1] - 1 > MAX_CANDIDATES and not _offered(tour, self._order[index]):
                raise InvalidSolution(f"tour {index} takes a node that was not among the {MAX_CANDIDATES} nearest")
        return tuple(
            float(distances[tour, np.roll(tour, -1)].sum())
            for tour, distances in zip(decisions, self._distances, strict=True)
        )


def _build(
    tour: NDArray[np.int64],
    distances: NDArray[np.float64],
    order: NDArray[np.int64],
    function: Callable[..., object],
    progress: Progress,
) -> None:
    """Fill one tour in place. `distances` is the candidate's own copy; `order` is never shown to it."""
    unvisited = np.ones(len(tour), dtype=bool)
    unvisited[0] = False
    current = 0
    for step in range(1, len(tour) - 1):
        nearest = order[current]
        offered = nearest[unvisited[nearest]][:MAX_CANDIDATES]
        value = function(current, 0, offered, distances)
        progress.advance()
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
