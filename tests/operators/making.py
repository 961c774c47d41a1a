"""Small tasks, candidates and trials for the tests of the operators."""

from __future__ import annotations

from operators.records import Candidate, Direction, Outcome, Proposal, Status
from operators.rewards import Trial
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
