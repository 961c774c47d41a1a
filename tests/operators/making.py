"""Small tasks, candidates, trials and things to learn for the tests of the operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from operators.noise import noise
from operators.records import Candidate, Direction, Outcome, Proposal, Status, Update
from operators.rewards import Trial
from operators.search import Situation
from operators.task import Idea, SeedHeuristic, Task

TASK = Task(
    name="toy",
    description="Choose the next item.",
    function="choose",
    arguments=("items", "weights"),
    signature="def choose(items: list, weights: list) -> int:",
    docstring="items: numbers.\nweights: their weights.\nReturns an index.",
    imports="import numpy as np",
    ideas=(
        Idea("Prefer the lightest.", "order = np.argsort(weights)"),
        Idea("Look two steps ahead.", "ahead = len(items) - 2"),
        Idea("Break ties at random.", "ties = np.random.rand(len(items))"),
    ),
    seeds=(SeedHeuristic("take the first", "def choose(items, weights):\n    return 0\n"),),
)


def candidate(number: int, objective: float) -> Candidate:
    """A member of a population, recognisable by its number."""
    return Candidate(number, "i1", f"idea {number}", f"def choose(items, weights):\n    return {number}\n", objective)


def population(size: int) -> list[Candidate]:
    """Best first: objectives 1, 2, 3 and so on."""
    return [candidate(number, 1.0 + number) for number in range(size)]


def trial(
    objective: float | None = None,
    *,
    status: Status | None = None,
    parents: tuple[float, ...] = (10.0,),
    worst: float = 20.0,
    duplicate: bool = False,
    calls: int = 0,
    direction: Direction | None = None,
) -> Trial:
    """A trial with this objective, or one that failed (it raised, unless another status is given)."""
    if status is None:
        status = Status.RAISED if objective is None else Status.OK
    return Trial(
        Proposal("m1", "prompt", "", tuple(candidate(i, parent) for i, parent in enumerate(parents)), direction),
        Outcome(status, objective, () if objective is None else (objective,), calls, "", 0 if duplicate else None),
        worst,
    )


@lru_cache(maxsize=100_000)
def eps(seed: int, size: int) -> NDArray[np.float64]:
    """The noise of a seed for weights that are one tensor."""
    values = noise(seed, "w", 0, size).astype(np.float64)
    values.setflags(write=False)
    return values


def step_of(update: Update, size: int) -> NDArray[np.float64]:
    """What an update adds to the weights."""
    return sum(
        (
            coefficient * eps(seed, size)
            for seed, coefficient in zip(update.noise_seeds, update.coefficients, strict=True)
        ),
        np.zeros(size),
    )


class Climber:
    """Weights in numpy, scored by their distance from a target: the smallest thing that can be learnt."""

    def __init__(self, size: int) -> None:
        self.weights = np.zeros(size)
        self.target = noise(99, "target", 0, size).astype(np.float64)

    def distance(self, direction: Direction | None = None) -> float:
        moved = 0.0 if direction is None else direction.sigma * eps(direction.seed, self.weights.size)
        return float(((self.weights + moved - self.target) ** 2).sum())

    def apply(self, update: Update) -> None:
        self.weights += step_of(update, self.weights.size)


class Blank:
    """An operator without prompts."""

    name = "blank"

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        return [Proposal(self.name, "", "", ())] * count

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> None:
        """Nothing to learn."""
