"""Ants for the travelling salesman: the candidate says how promising each edge is, and a colony of ants does the rest.

The instances are uniform in the unit square. Only the candidate's matrix leaves the driver; `score` lets the ants run,
30 of them for 100 iterations. An ant starts at a random node and goes on in proportion to pheromone * heuristic over
the nodes that it has not visited; pheromone starts at 1, fades to 0.9 of itself, and grows by 1 / length on both
directions of each edge of each ant's tour. The objective is the length of the best tour of all.

Weights are computed in float32, as in the published evaluator: a heuristic beyond its range is refused, and one below
1e-9 is lifted to it. Lengths are computed in float64, which changes them by rounding alone (1e-7 of the value). The
published evaluator refuses a heuristic when any float32 weight of a row that it meets overflows, this one when a row's
total over the nodes that are left does.

Every instance has its own stream of random numbers, of seed 1234 + 1000 * nodes + its position in the set. The same
seed starts the global generators that the candidate may use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems import ants, tours
from problems.base import EVALUATION_SEED, Decisions, Function, NotFinite, Problem, as_matrix
from problems.instances import Sets, one_stream
from problems.references import key_of

N_ANTS, N_ITERATIONS, DECAY = 30, 100, 0.9
HEURISTIC_FLOOR = np.float32(1e-9)

_FIRST = (("train", 50, 5), *(("val", size, 64) for size in (20, 50, 100)))

SETS = Sets(
    problem="aco_tsp",
    folder="tsp_aco",
    draw=lambda generator, count, size: generator.random_sample((count, size, 2)),
    published={
        **one_stream(1234, *_FIRST, ("test", 20, 64)),
        **one_stream(1234, *_FIRST, ("test", 50, 64), ("test", 100, 64)),
    },
    default_size=50,
    default_count={"train": 5, "val": 64, "test": 64},
    seed=1234,
)

_SIGNATURE = "def heuristics(distance_matrix):"


def _seed(idea: str, *body: str) -> SeedHeuristic:
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="aco_tsp",
    description=(
        "Guide ants to a short round trip through all nodes: "
        "say for each pair of nodes how promising it is to go from one to the other."
    ),
    function="heuristics",
    arguments=("distance_matrix",),
    signature=_SIGNATURE,
    docstring=(
        "distance_matrix: 2-D float array, distance_matrix[i][j] is the distance between nodes i and j; "
        "1 on the diagonal.\n"
        "Ants at node i go to an unvisited node j in proportion to matrix[i][j] times the pheromone of the edge.\n"
        "Returns the matrix: a 2-D float array of the same shape, all finite; below 1e-9 counts as 1e-9."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Raise the inverse distance to a power.", "matrix = 1 / (distance_matrix + 1e-9) ** 2.5"),
        Idea("Compare each distance with the mean distance of its nodes.", "means = distance_matrix.mean(axis=1)"),
        Idea(
            "Rank the neighbours of each node, and prefer the first.",
            "rank = distance_matrix.argsort(axis=1).argsort(axis=1)",
        ),
        Idea(
            "Leave out edges that are long for both of their nodes.",
            "far = np.sort(distance_matrix, axis=1)[:, :10].max(axis=1, keepdims=True)",
        ),
        Idea(
            "Let the value fall exponentially with the distance.",
            "scale = np.sort(distance_matrix, axis=1)[:, :3].mean()",
        ),
        Idea("Set each distance against that of the nearest neighbour.", "nearest = distance_matrix.min(axis=1)"),
        Idea(
            "Prefer edges that no third node offers a short detour for.",
            "detour = (distance_matrix[:, :, None] + distance_matrix[None]).min(axis=1)",
        ),
        Idea("Prefer edges between nodes that both lie far out.", "outer = distance_matrix.max(axis=1)"),
    ),
    seeds=(
        _seed("Prefer near nodes.", "return 1 / (distance_matrix + 1e-9)"),
        _seed("Prefer near nodes strongly.", "return 1 / (distance_matrix + 1e-9) ** 2"),
        _seed(
            "Prefer nodes that are near compared with the mean distances of both ends.",
            "means = distance_matrix.mean(axis=1)",
            "near = np.outer(means, means) / (distance_matrix + 1e-6) ** 2",
            "return near ** 2",
        ),
    ),
)


@dataclass(frozen=True)
class Cities:
    """One instance.

    Attributes:
        points: coordinates, float64 of shape (n, 2).
        distances: float64 of shape (n, n), 1 on the diagonal.
        seed: of the random numbers.
    """

    points: NDArray[np.float64]
    distances: NDArray[np.float64]
    seed: int


class AcoTsp(Problem):
    """The problem on one set of instances.

    Args:
        split: "train", "val" or "test".
        size: nodes of each instance, at least 2.
        n_instances: the first so many of the set.
        data: folder of published files instead of the documented seeds.
        evaluation_seed: what the instances' seeds are counted from.

    Raises:
        UserError: a value is out of range, the folder cannot be used, or all nodes of an instance lie in one place.
    """

    name = "aco_tsp"
    measure = "tour length"
    sets = SETS

    def __init__(
        self,
        split: str = "train",
        size: int | None = None,
        n_instances: int | None = None,
        data: str | None = None,
        evaluation_seed: int = EVALUATION_SEED,
    ) -> None:
        if size is not None and size < 2:
            raise UserError(f"size of aco_tsp must be at least 2 nodes, not {size}.")
        raw = SETS.load(split, size, n_instances, data)
        seeds = ants.seeds(evaluation_seed, raw.shape[1], len(raw))
        self.instances = [_cities(points, seeds[index], index) for index, points in enumerate(raw)]

    @property
    def task(self) -> Task:
        """What the model is told."""
        return TASK

    @property
    def n_calls(self) -> int:
        """One call an instance."""
        return len(self.instances)

    def seed(self, index: int) -> int:
        """Of the instance's own random numbers."""
        seed: int = self.instances[index].seed
        return seed

    def key(self, instance: Cities) -> str:
        """Of the coordinates."""
        return key_of(instance.points)

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Tour constructions, also improved by 2-opt."""
        return tours.BASELINES

    def solve(self, instance: Cities, function: Function) -> Decisions:
        """Ask the candidate's function for its matrix, float64 of shape (n, n).

        Raises:
            BadReturn: the function returned something else, or values that are not finite.
        """
        return as_matrix(function(instance.distances.copy()), instance.distances.shape, TASK.function)

    def score(self, instance: Cities, decisions: Decisions) -> float:
        """Length of the best tour that the ants find.

        Raises:
            WrongShape: no real matrix of shape (n, n).
            NotFinite: a value is not finite, or beyond float32 by itself or with others and the pheromone.
        """
        matrix = as_matrix(decisions, instance.distances.shape, TASK.function)
        with np.errstate(over="ignore"):
            heuristic = matrix.astype(np.float32)
        if not np.isfinite(heuristic).all():
            raise NotFinite(f"{TASK.function} returned values beyond the range of float32")
        heuristic = np.maximum(heuristic, HEURISTIC_FLOOR)
        generator = ants.stream(instance.seed)
        length = float(ants.shortest_tour(instance.distances, heuristic, generator, N_ANTS, N_ITERATIONS, DECAY))
        if not np.isfinite(length):
            raise NotFinite(f"values of {TASK.function} and pheromone together go beyond the range of float32")
        return length


def _cities(points: NDArray[Any], seed: int, index: int) -> Cities:
    points = points.astype(np.float64)
    distances = tours.distance_matrix(points)
    if not distances.any():
        raise UserError(f"All nodes of instance {index} of aco_tsp lie in one place. Take the instance out.")
    np.fill_diagonal(distances, 1.0)
    for array in (points, distances):
        array.flags.writeable = False
    return Cities(points, distances, seed)
