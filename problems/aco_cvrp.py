"""Ants for vehicle routing: the candidate says how promising each step is, and a colony of ants builds the routes.

Vehicles of capacity 50 start at the depot, node 0 in the middle of the unit square, and serve customers of demand 1 to
9, uniform in the square. Only the candidate's matrix leaves the driver; `score` lets 30 ants run for 100 iterations. An
ant goes on in proportion to pheromone * heuristic over the customers that are left and fit, and the depot unless it is
there; pheromone starts at 1, fades to 0.9 of itself, grows by 1 / cost on each step of each ant, and is kept above
1e-10. The heuristic is raised by 1e-9 and kept above it. The objective is the least cost of all.

Waiting costs. In the published evaluator all ants of an iteration take equally many steps: those that are done wait at
the depot until the last one is, and each such step is charged distance_matrix[0][0], which is 1. An ant with fewer
routes than another one pays 1 for each route it spared. Published values contain this charge, and it decides between
heuristics (1 / distance on the training set: 18.5 with it, 13.4 without), so it is kept: `score` has the same
distribution as the published evaluator. What routes cost by themselves, as the baselines give it, is never more.

The published evaluator takes a matrix with minus infinity for one with 1e-9; here it is refused like all that is not
finite.

Every instance has its own stream of random numbers, of seed 1234 + 1000 * customers + its position in the set. The same
seed starts the global generators that the candidate may use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems import ants, routes, tours
from problems.base import EVALUATION_SEED, Decisions, Function, NotFinite, Problem, as_matrix
from problems.instances import Sets, one_stream
from problems.references import key_of

CAPACITY = 50
N_ANTS, N_ITERATIONS, DECAY = 30, 100, 0.9
HEURISTIC_FLOOR = 1e-9


def _draw(generator: np.random.RandomState, count: int, size: int) -> NDArray[np.float64]:
    """Rows of (demand, x, y), the depot first; float64 of shape (count, size + 1, 3)."""
    raw = np.empty((count, size + 1, 3))
    raw[:, 0] = (0.0, 0.5, 0.5)
    for one in raw:
        one[1:, 1:] = generator.random_sample((size, 2))
        one[1:, 0] = generator.randint(1, 10, size=size)
    return raw


_FIRST = (("train", 50, 10), *(("val", size, 64) for size in (20, 50, 100)))

SETS = Sets(
    problem="aco_cvrp",
    folder="cvrp_aco",
    draw=_draw,
    published={
        **one_stream(1234, *_FIRST, ("test", 20, 64)),
        **one_stream(1234, *_FIRST, ("test", 50, 64), ("test", 100, 64)),
    },
    default_size=50,
    default_count={"train": 10, "val": 64, "test": 64},
    seed=1234,
)

_SIGNATURE = "def heuristics(distance_matrix, coordinates, demands, capacity):"


def _seed(idea: str, *body: str) -> SeedHeuristic:
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="aco_cvrp",
    description=(
        "Guide ants to short routes that serve all customers from a depot with vehicles of limited capacity: "
        "say for each pair of nodes how promising it is to go from one to the other."
    ),
    function="heuristics",
    arguments=("distance_matrix", "coordinates", "demands", "capacity"),
    signature=_SIGNATURE,
    docstring=(
        "distance_matrix: 2-D float array of shape (n, n); node 0 is the depot; 1 on the diagonal.\n"
        "coordinates: 2-D float array of shape (n, 2).\n"
        "demands: 1-D float array of shape (n,), 0 at the depot.\n"
        "capacity: what one vehicle can carry.\n"
        "Ants at node i go to the depot or a customer j that is left and fits, "
        "in proportion to matrix[i][j] times the pheromone of the step.\n"
        "Returns the matrix: a 2-D float array of shape (n, n), all finite; below 1e-9 counts as 1e-9."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Raise the inverse distance to a power.", "matrix = 1 / (distance_matrix + 1e-9) ** 2.5"),
        Idea(
            "Use savings: what is saved by going on instead of by the depot?",
            "savings = distance_matrix[:, :1] + distance_matrix[:1] - distance_matrix",
        ),
        Idea(
            "Return to the depot rarely, and only from near it.",
            "home = 0.001 / (distance_matrix[:, 0] + 1e-9)",
        ),
        Idea("Keep routes within one direction from the depot.", "rays = coordinates - coordinates[0]"),
        Idea("Serve large demands together with small ones.", "load = (demands[:, None] + demands[None]) / capacity"),
        Idea(
            "Rank the neighbours of each node, and prefer the first.",
            "rank = distance_matrix.argsort(axis=1).argsort(axis=1)",
        ),
        Idea("Begin routes at the farthest customers.", "far = distance_matrix[0] / distance_matrix[0].max()"),
        Idea(
            "Leave out steps between customers that are far apart.",
            "far = np.sort(distance_matrix, axis=1)[:, :10].max(axis=1, keepdims=True)",
        ),
    ),
    seeds=(
        _seed("Prefer near nodes.", "return 1 / (distance_matrix + 1e-9)"),
        _seed(
            "Prefer near nodes strongly, and return to the depot late.",
            "matrix = 1 / (distance_matrix + 1e-9) ** 2",
            "matrix[:, 0] *= 0.01",
            "return matrix",
        ),
        _seed(
            "Prefer near nodes that save a way to the depot, and return there last.",
            "savings = distance_matrix[:, :1] + distance_matrix[:1] - distance_matrix",
            "matrix = np.maximum(savings, 0.001) ** 3 / (distance_matrix + 1e-9) ** 2",
            "matrix[:, 0] = 0.0001",
            "return matrix",
        ),
    ),
    other_arguments=(("distance_matrix", "demands"),),
)


@dataclass(frozen=True)
class Customers:
    """One instance; node 0 is the depot.

    Attributes:
        points: coordinates, float64 of shape (n, 2).
        demands: float64 of shape (n,), 0 at the depot.
        distances: float64 of shape (n, n), 1 on the diagonal.
        seed: of the random numbers.
    """

    points: NDArray[np.float64]
    demands: NDArray[np.float64]
    distances: NDArray[np.float64]
    seed: int


class AcoCvrp(Problem):
    """The problem on one set of instances.

    Args:
        split: "train", "val" or "test".
        size: customers of each instance.
        n_instances: the first so many of the set.
        data: folder of published files instead of the documented seeds.
        evaluation_seed: what the instances' seeds are counted from.

    Raises:
        UserError: a value is out of range, the folder cannot be used, or an instance has a demand that no vehicle can
            carry or that is negative, a demand at the depot, or all nodes in one place.
    """

    name = "aco_cvrp"
    measure = "route cost"
    sets = SETS

    def __init__(
        self,
        split: str = "train",
        size: int | None = None,
        n_instances: int | None = None,
        data: str | None = None,
        evaluation_seed: int = EVALUATION_SEED,
    ) -> None:
        raw = SETS.load(split, size, n_instances, data)
        seeds = ants.seeds(evaluation_seed, raw.shape[1] - 1, len(raw))
        self.instances = [_customers(rows, seeds[index], index) for index, rows in enumerate(raw)]

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

    def key(self, instance: Customers) -> str:
        """Of the rows (demand, x, y)."""
        return key_of(np.column_stack((instance.demands, instance.points)))

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Route constructions."""
        return {
            "nearest neighbour": lambda one: routes.nearest_neighbour(one.distances, one.demands, CAPACITY),
            "savings": lambda one: routes.savings(one.distances, one.demands, CAPACITY),
        }

    def solve(self, instance: Customers, function: Function) -> Decisions:
        """Ask the candidate's function for its matrix, float64 of shape (n, n).

        A function that cannot be called with four arguments is called with (distances, demands / capacity).

        Raises:
            BadReturn: the function returned something else, or values that are not finite.
        """
        distances, demands = instance.distances.copy(), instance.demands.copy()
        if _takes_all(function):
            value = function(distances, instance.points.copy(), demands, CAPACITY)
        else:
            value = function(distances, demands / CAPACITY)
        return as_matrix(value, instance.distances.shape, TASK.function)

    def score(self, instance: Customers, decisions: Decisions) -> float:
        """Least cost that the ants find, waiting included.

        Raises:
            WrongShape: no real matrix of shape (n, n).
            NotFinite: a value is not finite, or so large that the total of a row is not.
        """
        matrix = as_matrix(decisions, instance.distances.shape, TASK.function)
        heuristic = np.maximum(matrix + HEURISTIC_FLOOR, HEURISTIC_FLOOR)
        cost = float(
            ants.cheapest_routes(
                instance.distances,
                heuristic,
                instance.demands,
                float(CAPACITY),
                ants.stream(instance.seed),
                N_ANTS,
                N_ITERATIONS,
                DECAY,
            )
        )
        if not np.isfinite(cost):
            raise NotFinite(f"values of {TASK.function} and pheromone together go beyond the range of float64")
        return cost


def _takes_all(function: Function) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*TASK.arguments)
    except TypeError:
        return False
    return True


def _customers(rows: NDArray[Any], seed: int, index: int) -> Customers:
    rows = rows.astype(np.float64)
    demands, points = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1:])
    what = f"instance {index} of aco_cvrp"
    if demands[0] != 0 or demands.min() < 0:
        raise UserError(f"The first row of {what} must be the depot, of demand 0, and no demand may be negative.")
    if demands.max() > CAPACITY:
        node = int(demands.argmax())
        raise UserError(f"Customer {node} of {what} has demand {demands[node]:g}; a vehicle carries {CAPACITY}.")
    distances = tours.distance_matrix(points)
    if not distances.any():
        raise UserError(f"All nodes of {what} lie in one place. Take the instance out.")
    np.fill_diagonal(distances, 1.0)
    for array in (points, demands, distances):
        array.flags.writeable = False
    return Customers(points, demands, distances, seed)
