"""Constructive knapsack: the candidate picks the next item to pack, one call a step, until none fits.

Weights and values are uniform in [0, 1). Only the chosen items leave the driver; that they fit and what they are worth
is computed from the instances by `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems.base import Decisions, Function, InvalidSolution, Problem, WrongShape, as_node
from problems.instances import Sets, one_stream
from problems.references import key_of

TOLERANCE = 1e-12
"""An item fits when its weight is at most this much above the remaining capacity."""

CAPACITY_OF = {50: 12.5, 100: 25.0, 200: 25.0}
"""Capacity by number of items; for other numbers a quarter of it."""

SETS = Sets(
    problem="kp_construct",
    folder="kp_constructive",
    draw=lambda generator, count, size: generator.random_sample((count, size, 2)),
    published=one_stream(
        3333,
        ("train", 100, 64),
        *(("val", size, 64) for size in (50, 100, 200)),
        *(("test", size, 1000) for size in (50, 100, 200)),
    ),
    default_size=100,
    default_count={"train": 64, "val": 64, "test": 64},
    seed=3333,
)

_SIGNATURE = "def select_next_item(remaining_capacity, weights, values):"
_FITTING = "np.where(weights <= remaining_capacity + 1e-12, score, -np.inf)"


def _seed(idea: str, score: str) -> SeedHeuristic:
    body = (f"score = {score}", f"return np.argmax({_FITTING})")
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="kp_construct",
    description=(
        "Pack items of high total value into a knapsack step by step: "
        "given the remaining capacity, choose which item that fits to take next."
    ),
    function="select_next_item",
    arguments=("remaining_capacity", "weights", "values"),
    signature=_SIGNATURE,
    docstring=(
        "remaining_capacity: float, the weight that can still be taken; packing goes on until no item fits.\n"
        "weights: 1-D float array, the weights of the items that are left, in no order; some may not fit.\n"
        "values: 1-D float array, the values of the same items.\n"
        "Returns the index of the next item, which must have weights[index] <= remaining_capacity."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Weigh value against weight by a power of the weight.", "density = values / (weights + 1e-9) ** 0.8"),
        Idea("Only look at the items that fit.", "fitting = np.flatnonzero(weights <= remaining_capacity)"),
        Idea("Fill the last gap: prefer what leaves little room at the end.", "room = remaining_capacity - weights"),
        Idea("Change the rule when the knapsack is nearly full.", "nearly_full = remaining_capacity < 1.0"),
        Idea(
            "Set a price for weight, and take what is worth most above it.",
            "price = np.median(values / (weights + 1e-9))",
        ),
        Idea(
            "Look ahead: what could still be taken after each item?",
            "later = [(weights <= remaining_capacity - weight).sum() for weight in weights]",
        ),
        Idea("Skip items that others of less weight and more value beat.", "order = np.lexsort((-values, weights))"),
        Idea(
            "Compare each item with the mean of the rest.", "better = values / values.mean() - weights / weights.mean()"
        ),
    ),
    seeds=(
        _seed("Take the most valuable item that fits.", "values"),
        _seed("Take the item that fits with the most value for its weight.", "values / (weights + 1e-9)"),
        _seed("Take value for weight, but favour larger items a little.", "values / (weights + 1e-9) ** 0.9"),
    ),
)


@dataclass(frozen=True)
class Items:
    """One instance.

    Attributes:
        weights: float64 of shape (n,), none negative.
        values: float64 of shape (n,).
        capacity: at least the smallest weight.
    """

    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    capacity: float


class KpConstruct(Problem):
    """The problem on one set of instances.

    Args:
        split: "train", "val" or "test".
        size: items of each instance.
        n_instances: the first so many of the set.
        data: folder of published files instead of the documented seeds.

    Raises:
        UserError: a value is out of range, the folder cannot be used, or nothing fits into the knapsack of an instance.
    """

    name = "kp_construct"
    measure = "total value"
    maximise = True
    sets = SETS

    def __init__(
        self, split: str = "train", size: int | None = None, n_instances: int | None = None, data: str | None = None
    ) -> None:
        raw = SETS.load(split, size, n_instances, data)
        capacity = CAPACITY_OF.get(raw.shape[1], raw.shape[1] / 4)
        self.instances = [_items(one, capacity, f"instance {index}") for index, one in enumerate(raw)]

    @property
    def task(self) -> Task:
        """What the model is told."""
        return TASK

    def key(self, instance: Items) -> str:
        """Of the weight and value of each item in turn, and the capacity."""
        return key_of(np.append(np.column_stack((instance.weights, instance.values)), instance.capacity))

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Taking items by falling value, and by falling value for weight."""
        return {
            "density greedy": lambda items: _greedy(items, items.values / np.maximum(items.weights, TOLERANCE)),
            "value greedy": lambda items: _greedy(items, items.values),
        }

    def solve(self, instance: Items, function: Function) -> Decisions:
        """Pack a knapsack with the candidate's function.

        Returns:
            Items in the order they were taken, int64 of shape (number of items taken,).

        Raises:
            BadReturn: the function returned no index, or that of no item that fits.
        """
        weights, values = instance.weights.copy(), instance.values.copy()
        left = list(range(len(weights)))
        lightest = _Lightest(instance.weights)
        remaining = instance.capacity
        taken: list[int] = []
        while left and lightest.weight <= remaining + TOLERANCE:
            end = len(left)
            value = function(remaining, weights[:end].copy(), values[:end].copy())
            index = as_node(value, TASK.function)
            if not 0 <= index < end:
                raise InvalidSolution(f"{TASK.function} returned {index} of {end} items (step {len(taken) + 1})")
            weight = float(weights[index])
            if weight > remaining + TOLERANCE:
                raise InvalidSolution(
                    f"{TASK.function} returned an item of weight {weight:.6g} "
                    f"where {remaining:.6g} remains (step {len(taken) + 1})"
                )
            for array in (weights, values):
                array[index : end - 1] = array[index + 1 : end]
            taken.append(left.pop(index))
            lightest.drop(taken[-1])
            remaining -= weight
        return np.array(taken, dtype=np.int64)

    def score(self, instance: Items, decisions: Decisions) -> float:
        """Total value of the items taken.

        Raises:
            WrongShape: not an integer array of one dimension.
            InvalidSolution: an item does not exist, is taken twice or does not fit when it is taken.
        """
        if decisions.ndim != 1 or not np.issubdtype(decisions.dtype, np.signedinteger):
            raise WrongShape(
                f"the items are {decisions.dtype} of shape {decisions.shape}, expected integers in one dimension"
            )
        ids = np.sort(decisions)
        if len(ids) and (ids[0] < 0 or ids[-1] >= len(instance.weights) or not np.all(np.diff(ids))):
            raise InvalidSolution("an item was taken twice, or one that does not exist")
        weights = instance.weights[decisions]
        before = np.subtract.accumulate(np.append(instance.capacity, weights))[:-1]
        if np.any(weights > before + TOLERANCE):
            raise InvalidSolution("an item was taken that did not fit")
        return float(instance.values[decisions].sum())


class _Lightest:
    """The smallest weight among the items that are left, in constant time a step."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self._weights = weights.tolist()
        self._order = np.argsort(weights, kind="stable").tolist()
        self._gone = [False] * len(weights)
        self._place = 0

    @property
    def weight(self) -> float:
        """That weight; there must be an item left."""
        weight: float = self._weights[self._order[self._place]]
        return weight

    def drop(self, item: int) -> None:
        """An item is taken."""
        self._gone[item] = True
        while self._place < len(self._order) - 1 and self._gone[self._order[self._place]]:
            self._place += 1


def _items(raw: NDArray[np.float64], capacity: float, where: str) -> Items:
    """An instance from rows of (weight, value).

    Raises:
        UserError: a weight is negative, or no item fits.
    """
    weights, values = np.array(raw.T, dtype=np.float64, order="C")
    if weights.min() < 0:
        raise UserError(f"{where} of kp_construct has an item of weight {weights.min():.6g}; none may be negative.")
    if weights.min() > capacity + TOLERANCE:
        raise UserError(
            f"capacity {capacity:g} is below the smallest item of {where} of kp_construct ({weights.min():.6g}). "
            "Choose a larger size, or other data."
        )
    for array in (weights, values):
        array.flags.writeable = False
    return Items(weights, values, capacity)


def _greedy(items: Items, priorities: NDArray[np.float64]) -> float:
    """Total value of the items that fit, taken by falling priority."""
    remaining, total = items.capacity, 0.0
    for item in np.argsort(-priorities, kind="stable"):
        if items.weights[item] <= remaining + TOLERANCE:
            remaining -= items.weights[item]
            total += items.values[item]
    return float(total)
