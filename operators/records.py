"""The records that travel between operators and whoever runs them. Plain frozen data, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    """How the evaluation of one candidate ended. Exactly one of these is recorded for each candidate."""

    OK = "ok"
    NO_CODE = "no_code"
    SYNTAX = "syntax"
    WRONG_NAME = "wrong_name"
    WRONG_ARGUMENTS = "wrong_arguments"
    RAISED = "raised"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    NOT_FINITE = "not_finite"
    WRONG_SHAPE = "wrong_shape"
    INVALID_SOLUTION = "invalid_solution"
    INFRASTRUCTURE = "infrastructure"
    """Ours, not the candidate's: retried by the evaluator, and never turned into a reward."""


@dataclass(frozen=True)
class Outcome:
    """What became of one candidate.

    Attributes:
        status: how it ended.
        objective: mean objective over the instances, lower is better; None unless status is OK.
        per_instance: the objective of each instance; empty unless status is OK.
        calls: how many calls of the candidate's function returned before the end.
        detail: one line for people: the candidate's own error, trimmed.
        duplicate_of: id of the earlier candidate with the same normalised code or the same objective on every
            instance; None when the candidate is new.
        trace: the way of a raised error through the candidate's source, one call a line, trimmed.
    """

    status: Status
    objective: float | None = None
    per_instance: tuple[float, ...] = ()
    calls: int = 0
    detail: str = ""
    duplicate_of: int | None = None
    trace: str = ""

    @property
    def label(self) -> str:
        """One word for tables: the status, or "duplicate" for a valid candidate that is not new."""
        return "duplicate" if self.valid and not self.new else self.status.value

    @property
    def valid(self) -> bool:
        """Whether the candidate solved every instance."""
        return self.status is Status.OK

    @property
    def new(self) -> bool:
        """Whether the candidate is valid and no duplicate."""
        return self.valid and self.duplicate_of is None


@dataclass(frozen=True)
class Candidate:
    """A heuristic with a known objective: a member of the population.

    Attributes:
        id: running number within the run.
        operator: name of the operator that made it; "seed" for a given heuristic.
        idea: one sentence.
        code: Python source.
        objective: lower is better.
    """

    id: int
    operator: str
    idea: str
    code: str
    objective: float


@dataclass(frozen=True)
class Direction:
    """A perturbation of the weights: theta + sigma * eps(seed).

    Attributes:
        seed: 64-bit seed of the noise.
        sigma: size of the perturbation; negative for the mirror of a direction, which goes the opposite way.
    """

    seed: int
    sigma: float


@dataclass(frozen=True)
class Proposal:
    """A request for one candidate.

    Attributes:
        operator: name of the operator that asks.
        prompt: the user turn.
        prefill: the beginning of the assistant turn, empty for models that need none.
        parents: candidates the prompt shows.
        direction: the perturbation to write the candidate under; None for the current weights.
    """

    operator: str
    prompt: str
    prefill: str
    parents: tuple[Candidate, ...]
    direction: Direction | None = None


@dataclass(frozen=True)
class Update:
    """One ES step: theta <- theta + sum_i coefficients[i] * eps(noise_seeds[i]).

    Attributes:
        step: running number of the update within the run.
        seeds: the directions' seeds; a direction and its mirror have one.
        rewards: mean reward measured under each seed.
        weights: shaped rewards, one a seed; of a direction and its mirror half the difference.
        alpha: learning rate.
        sigma: size of the perturbations that the rewards were measured under.
        inherited: what momentum adds: (seed, coefficient) of directions of earlier updates.
        signal: share of the rewards' variance that belongs to the directions, see
            `operators.adaptation.signal_share`; None where it was not measured.
    """

    step: int
    seeds: tuple[int, ...]
    rewards: tuple[float, ...]
    weights: tuple[float, ...]
    alpha: float
    sigma: float
    inherited: tuple[tuple[int, float], ...] = ()
    signal: float | None = None

    @property
    def own_coefficients(self) -> tuple[float, ...]:
        """(alpha / number of seeds) * weight, one a seed, in float64."""
        return tuple(self.alpha / len(self.weights) * weight for weight in self.weights)

    @property
    def coefficients(self) -> tuple[float, ...]:
        """What each of `noise_seeds` is added with, in float64."""
        return (*self.own_coefficients, *(coefficient for _, coefficient in self.inherited))

    @property
    def noise_seeds(self) -> tuple[int, ...]:
        """All seeds whose noise moves the weights: the update's own, then the inherited ones."""
        return (*self.seeds, *(seed for seed, _ in self.inherited))


@dataclass(frozen=True)
class Skip:
    """An update that was not made, and why."""

    step: int
    reason: str
