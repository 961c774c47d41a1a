"""Rewards of the search: from the outcomes of one operator batch to a number for each candidate, higher is better.

A reward sees the whole batch, because the paper's penalties for invalid candidates depend on the valid ones. It gives
None for a candidate that must not count (an infrastructure failure), or a reason to make no update at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from operators.records import Outcome, Proposal, Status


@dataclass(frozen=True)
class Trial:
    """One candidate of a batch: what was asked and what came of it.

    Attributes:
        proposal: what was asked.
        outcome: what came of it.
        worst: worst finite objective of the population when the batch began.
    """

    proposal: Proposal
    outcome: Outcome
    worst: float

    @property
    def parent_objective(self) -> float | None:
        """Best objective among the parents; None without parents."""
        return min((parent.objective for parent in self.proposal.parents), default=None)


@dataclass(frozen=True)
class Rewards:
    """The batch's rewards, or the reason why it has none.

    Attributes:
        values: one a trial; None for a trial that does not count.
        no_signal: why the batch must not lead to an update; empty when it may.
    """

    values: tuple[float | None, ...]
    no_signal: str = ""


Reward = Callable[[Sequence[Trial]], Rewards]

LEVELS = ("no program", "parses", "defines", "right arguments", "runs", "valid", "new", "better")


def level(trial: Trial) -> int:
    """How far a candidate came on the ladder `LEVELS`, 0..7. A valid duplicate stays on "valid", below "new"."""
    outcome = trial.outcome
    if outcome.status in (Status.NO_CODE, Status.SYNTAX):
        return 0
    if outcome.status is Status.WRONG_NAME:
        return 1
    if outcome.status is Status.WRONG_ARGUMENTS:
        return 2
    if not outcome.valid:
        return 4 if outcome.calls else 3
    if not outcome.new:
        return 5
    parent = trial.parent_objective
    better = parent is not None and outcome.objective is not None and outcome.objective < parent
    return 7 if better else 6


def graded(trials: Sequence[Trial]) -> Rewards:
    """The share of the ladder that a candidate climbed, 0..1: a signal for models whose candidates often fail."""
    return Rewards(tuple(_scored(trial, level(trial) / (len(LEVELS) - 1)) for trial in trials))


def paper(trials: Sequence[Trial]) -> Rewards:
    """EoH + ESOpt (paper D.5.1): parent's objective minus the child's, invalid children at min(worst, parent + 1).

    A batch without a valid child gives no signal. Note that a valid child slightly better than the population's worst
    may get less than an invalid one: `ordered` never does that.
    """

    def value(trial: Trial) -> float:
        parent = _parent_or_worst(trial)
        objective = trial.outcome.objective
        if objective is not None and objective <= trial.worst:
            return parent - objective
        return parent - min(trial.worst, parent + 1.0)

    return _needs_valid(trials, value)


def ordered(trials: Sequence[Trial]) -> Rewards:
    """Parent's objective minus the child's; invalid and duplicate children one spread below the lowest valid gain."""
    gains = [
        _parent_or_worst(trial) - trial.outcome.objective
        for trial in trials
        if trial.outcome.new and trial.outcome.objective is not None
    ]
    floor = min(gains) - _spread(gains) if gains else 0.0

    def value(trial: Trial) -> float:
        if trial.outcome.new and trial.outcome.objective is not None:
            return _parent_or_worst(trial) - trial.outcome.objective
        return floor

    if not gains:
        return Rewards((None,) * len(trials), "no candidate of the batch was valid and new")
    return _needs_valid(trials, value)


def sample(trials: Sequence[Trial]) -> Rewards:
    """Sample + ESOpt: minus the objective; an invalid candidate gets the lowest valid reward minus their spread."""
    valid = [-trial.outcome.objective for trial in trials if trial.outcome.objective is not None]
    floor = min(valid) - _spread(valid) if valid else 0.0

    def value(trial: Trial) -> float:
        return floor if trial.outcome.objective is None else -trial.outcome.objective

    return _needs_valid(trials, value)


def _needs_valid(trials: Sequence[Trial], value: Callable[[Trial], float]) -> Rewards:
    if not any(trial.outcome.valid for trial in trials):
        return Rewards((None,) * len(trials), "no candidate of the batch was valid")
    return Rewards(tuple(_scored(trial, value(trial)) for trial in trials))


def _scored(trial: Trial, value: float) -> float | None:
    return None if trial.outcome.status is Status.INFRASTRUCTURE else value


def _parent_or_worst(trial: Trial) -> float:
    parent = trial.parent_objective
    return trial.worst if parent is None else parent


def _spread(values: Sequence[float]) -> float:
    spread = float(np.std(values))
    return spread if spread > 1e-8 else max(0.01 * abs(float(np.mean(values))), 1.0)
