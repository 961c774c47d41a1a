"""Ants for bin packing: the candidate says how well each two items go together, and packings are built from that.

Items have sizes from 20 to 100, bins a capacity of 150. Only the candidate's matrix leaves the driver. It is clipped to
[1e-6, 1e6], divided by its maximum, and clipped at 1e-6 again. A packing fills bin after bin: the first item is
uniformly random, each further one is chosen among those that fit by its mean affinity to the items in the bin, plus
1e-5, until none fits. The objective is the number of bins of the best packing.

On "train" these are 200 packings, which always take the item of the highest affinity, the first where several have it;
affinity is the heuristic. On "val" and "test" they are those of 20 ants in 15 iterations, which draw an item in
proportion; affinity is pheromone * heuristic. Pheromone starts at 1, fades to 0.95 of itself, and grows on each pair of
items in one bin by an ant's fitness / 20; fitness is the mean of the bins' squared degrees of filling.

Affinities to a bin are summed up in the order in which its items came, in the published evaluator in the order of their
numbers: sums of three and more may differ by rounding. The published evaluator also takes minus infinity for 1e-6; here
it is refused like all that is not finite.

Every instance has its own stream of random numbers, of seed 1234 + 1000 * items + its position in the set. The same
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
from problems import ants, ants_packing, bins
from problems.base import EVALUATION_SEED, Decisions, Function, InvalidSolution, Problem, as_matrix
from problems.instances import Sets, one_stream
from problems.references import key_of

CAPACITY = 150
N_PACKINGS = 200
N_ANTS, N_ITERATIONS, DECAY = 20, 15, 0.95
HEURISTIC_FLOOR, HEURISTIC_CEILING = 1e-6, 1e6

SETS = Sets(
    problem="aco_bpp",
    folder="bpp_offline_aco",
    draw=lambda generator, count, size: generator.randint(20, 101, size=(count, size)),
    published={
        **one_stream(5, ("train", 500, 5)),
        **one_stream(3, *(("val", size, 64) for size in (120, 500, 1000))),
        **one_stream(4, *(("test", size, 64) for size in (500, 1000))),
    },
    default_size=500,
    default_count={"train": 5, "val": 64, "test": 64},
    seed=1234,
)

_SIGNATURE = "def heuristics(demand, capacity):"


def _seed(idea: str, *body: str) -> SeedHeuristic:
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="aco_bpp",
    description=(
        "Guide the packing of items into as few bins as possible: "
        "say for each pair of items how promising it is to put them into one bin."
    ),
    function="heuristics",
    arguments=("demand", "capacity"),
    signature=_SIGNATURE,
    docstring=(
        "demand: 1-D integer array, the sizes of the n items, in no order.\n"
        "capacity: integer, the size of a bin.\n"
        "A bin starts with a random item; then the item j that fits and has the highest mean of matrix[i][j] "
        "over the items i in the bin is added, until none fits.\n"
        "Returns the matrix: a 2-D float array of shape (n, n), all finite, at least one positive; "
        "below 1e-6 counts as 1e-6."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Look at the room that two items leave.", "room = capacity - demand[:, None] - demand[None]"),
        Idea("Prefer items close to half a bin.", "half = 1 / (1 + np.abs(demand - 0.5 * capacity))"),
        Idea("Prefer large items.", "large = (demand / demand.max()) ** 2"),
        Idea("Leave either no room, or enough for one more item.", "smallest = demand.min()"),
        Idea(
            "Pair each item with what nearly fills the rest of the bin.",
            "filled = (demand[:, None] + demand[None]) / capacity",
        ),
        Idea(
            "Prefer items whose size many others complete.",
            "partners = np.abs(capacity - demand[:, None] - demand[None]).min(axis=1)",
        ),
        Idea("Look at items as thirds and halves of a bin.", "share = np.round(capacity / demand)"),
        Idea(
            "Put unlike items together: a large one with small ones.",
            "unlike = np.abs(demand[:, None] - demand[None]) / capacity",
        ),
    ),
    seeds=(
        _seed("Prefer large items.", "return np.tile(demand / demand.max(), (len(demand), 1))"),
        _seed(
            "Prefer large items that leave either almost no room or room for one more.",
            "room = capacity - demand[:, None] - demand[None]",
            "full = (room >= 0) & (room < 0.03 * capacity)",
            "return np.where(full | (room >= 0.2 * capacity), 1.0, 0.1) * demand",
        ),
        _seed(
            "Prefer large items more, unless they leave room that nothing fills.",
            "room = capacity - demand[:, None] - demand[None]",
            "full = (room >= 0) & (room < 0.03 * capacity)",
            "return np.where(full | (room > 0.21 * capacity), 1.0, 0.1) * demand ** 2.0",
        ),
    ),
)


@dataclass(frozen=True)
class Items:
    """One instance.

    Attributes:
        sizes: int64 of shape (n,), from 1 to the capacity.
        seed: of the random numbers.
    """

    sizes: NDArray[np.int64]
    seed: int


class AcoBpp(Problem):
    """The problem on one set of instances.

    Args:
        split: "train", "val" or "test"; "train" has an objective of its own.
        size: items of each instance.
        n_instances: the first so many of the set.
        data: folder of published files instead of the documented seeds.
        evaluation_seed: what the instances' seeds are counted from.

    Raises:
        UserError: a value is out of range, the folder cannot be used, or the size of an item is no whole number from 1
            to the capacity.
    """

    name = "aco_bpp"
    measure = "bins"
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
        seeds = ants.seeds(evaluation_seed, raw.shape[1], len(raw))
        self._greedy = split == "train"
        self.instances = [_items(sizes, seeds[index], index) for index, sizes in enumerate(raw)]

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

    def key(self, instance: Items) -> str:
        """Of the sizes."""
        return key_of(instance.sizes)

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Packings in descending order of size."""
        return {
            "first-fit decreasing": lambda one: bins.first_fit_decreasing(one.sizes, CAPACITY),
            "best-fit decreasing": lambda one: bins.best_fit_decreasing(one.sizes, CAPACITY),
        }

    def solve(self, instance: Items, function: Function) -> Decisions:
        """Ask the candidate's function for its matrix, float64 of shape (n, n).

        Raises:
            BadReturn: the function returned something else, values that are not finite, or none above 0.
        """
        return _matrix(function(instance.sizes.copy(), CAPACITY), len(instance.sizes))

    def score(self, instance: Items, decisions: Decisions) -> float:
        """Bins of the best packing.

        Raises:
            WrongShape: no real matrix of shape (n, n).
            NotFinite: a value is not finite.
            InvalidSolution: no value is above 0.
        """
        heuristic = np.clip(_matrix(decisions, len(instance.sizes)), HEURISTIC_FLOOR, HEURISTIC_CEILING)
        heuristic = np.maximum(heuristic / heuristic.max(), HEURISTIC_FLOOR)
        generator = ants.stream(instance.seed)
        if self._greedy:
            return float(ants_packing.fewest_bins_greedy(heuristic, instance.sizes, CAPACITY, generator, N_PACKINGS))
        return float(
            ants_packing.fewest_bins(heuristic, instance.sizes, CAPACITY, generator, N_ANTS, N_ITERATIONS, DECAY)
        )


def _matrix(value: object, n: int) -> NDArray[np.float64]:
    matrix = as_matrix(value, (n, n), TASK.function)
    if matrix.max() <= 0:
        raise InvalidSolution(f"{TASK.function} returned no value above 0")
    return matrix


def _items(raw: NDArray[Any], seed: int, index: int) -> Items:
    wrong = (raw != np.floor(raw)) | (raw < 1) | (raw > CAPACITY)
    if wrong.any():
        item = int(wrong.argmax())
        raise UserError(
            f"Item {item} of instance {index} of aco_bpp has size {raw[item]:g}; "
            f"sizes are whole numbers from 1 to the capacity, {CAPACITY}."
        )
    sizes = raw.astype(np.int64)
    sizes.flags.writeable = False
    return Items(sizes, seed)
