"""Ablations of evolution strategies: the same operator with one half of the method taken away.

They tell what a gain is owed to: `NoiseOnly` keeps the perturbations and never moves the weights, `WithoutPerturbation`
moves them along directions that nothing was written under. Both draw the same random numbers as what they wrap.
Source: Agentic-ESOpt, ablation of TSP-50 ("noise only").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from operators.evolution_strategy import NO_SIGMA
from operators.records import Proposal, Skip, Update
from operators.rewards import Trial
from operators.search import Operator, Situation

_ANY_SIGMA = 1.0


@dataclass(frozen=True)
class NoiseOnly:
    """Perturb, never update. What the update would have been is the reason of the skip.

    Attributes:
        inner: an operator whose proposals carry directions.
    """

    inner: Operator

    @property
    def name(self) -> str:
        """The inner operator's name."""
        return self.inner.name

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """The inner operator's proposals."""
        return self.inner.ask(count, situation)

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> Skip | None:
        """A skip in place of each update."""
        decision = self.inner.tell(step, trials, rng)
        return Skip(step, _not_applied(decision)) if isinstance(decision, Update) else decision


def _not_applied(update: Update) -> str:
    rewards = np.array(update.rewards)
    return (
        f"noise only: not applied, alpha {update.alpha:g}, {len(rewards)} directions, "
        f"reward {rewards.mean():.4g} +- {rewards.std():.4g}"
    )


@dataclass(frozen=True)
class WithoutPerturbation:
    """Update without perturbation: a control that cannot learn, since no reward knows of its direction.

    Candidates are written under sigma 0, and the update is made from the directions' seeds and the rewards as if they
    had been written under sigma. Where the schedule's sigma is 0 there is no update, as in the method itself.

    Attributes:
        inner: an operator whose proposals carry directions, none of which is a mirror of another.
    """

    inner: Operator

    @property
    def name(self) -> str:
        """The inner operator's name."""
        return self.inner.name

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """The inner operator's proposals under directions of size 0; under none where the schedule ends at 0."""
        return [_unmoved(proposal) for proposal in self.inner.ask(count, situation)]

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> Update | Skip | None:
        """The inner operator's update; its sigma is 0, which is what the rewards were measured under."""
        if all(trial.proposal.direction is None for trial in trials):
            return Skip(step, NO_SIGMA)
        decision = self.inner.tell(step, [_as_if_moved(trial) for trial in trials], rng)
        return replace(decision, sigma=0.0) if isinstance(decision, Update) else decision


def _unmoved(proposal: Proposal) -> Proposal:
    direction = proposal.direction
    return replace(proposal, direction=replace(direction, sigma=0.0) if direction and direction.sigma else None)


def _as_if_moved(trial: Trial) -> Trial:
    direction = trial.proposal.direction
    moved = None if direction is None else replace(direction, sigma=_ANY_SIGMA)
    return replace(trial, proposal=replace(trial.proposal, direction=moved))
