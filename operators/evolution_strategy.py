"""Evolution strategies around any operator: directions for its proposals, an update from their outcomes.

theta' = theta + sigma_t * eps(seed) for each direction; rewards R_i of what was written under it; then
theta <- theta + (alpha / G) * sum_i w_i * eps_i with shaped rewards w. There is no factor 1/sigma: alpha is the
effective step. This object draws seeds and computes w; it never sees a weight. With sigma_T = 0 it serves a search,
with sigma_T > 0 the training of agents.
Source: Agentic-ESOpt, section 3 and appendix D.5.1; Salimans et al., arXiv 1703.03864.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from operators.errors import UserError
from operators.records import Direction, Proposal, Skip, Update
from operators.rewards import Reward, Trial
from operators.schedules import Schedule
from operators.search import Operator, Situation
from operators.shaping import Shaping, has_spread, z_score


@dataclass(frozen=True)
class EvolutionStrategy:
    """Wraps an operator so that the model learns from what it proposes.

    Attributes:
        inner: the operator that writes the proposals.
        reward: rewards of a batch of trials.
        sigma: size of the perturbation by generation.
        alpha: learning rate, finite and not negative.
        samples_per_direction: candidates written under each direction; their mean reward is the direction's.
        shaping: from the directions' rewards to the update's weights.
    """

    inner: Operator
    reward: Reward
    sigma: Schedule
    alpha: float
    samples_per_direction: int = 1
    shaping: Shaping = z_score

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise UserError(f"alpha must be a finite number of at least 0, not {self.alpha}.")
        if self.samples_per_direction < 1:
            raise UserError(f"samples per direction must be at least 1, not {self.samples_per_direction}.")

    @property
    def name(self) -> str:
        """The inner operator's name."""
        return self.inner.name

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """Exactly `count` proposals; those of one direction stand side by side."""
        written = self.inner.ask(count, situation)  # first: so that it draws the same with and without directions
        sigma = self.sigma(situation.generation)
        samples = self.samples_per_direction
        directions = -(-count // samples)
        seeds = [int(seed) for seed in situation.rng.integers(2**64, size=directions, dtype=np.uint64)]
        return [
            replace(proposal, direction=Direction(seeds[index // samples], sigma))
            for index, proposal in enumerate(written)
        ]

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> Update | Skip:
        """The update that the batch teaches, or why it teaches none.

        A direction counts when at least one of its trials was scored; infrastructure failures are left out of its mean.

        Raises:
            ValueError: a reward is not finite, or a trial has no direction (errors of the caller).
        """
        rewards = self.reward(trials)
        if rewards.no_signal:
            return Skip(step, rewards.no_signal)
        by_direction: dict[Direction, list[float]] = {}
        for trial, value in zip(trials, rewards.values, strict=True):
            if trial.proposal.direction is None:
                raise ValueError(f"A trial of {self.name} has no direction.")
            if value is not None:
                if not math.isfinite(value):
                    raise ValueError(f"A reward of {self.name} is {value}: rewards must be finite.")
                by_direction.setdefault(trial.proposal.direction, []).append(value)
        return self._update(step, by_direction, rng)

    def _update(self, step: int, by_direction: dict[Direction, list[float]], rng: np.random.Generator) -> Update | Skip:
        if len(by_direction) < 2:
            return Skip(step, f"{len(by_direction)} scored directions, and an update needs at least 2")
        sigma = next(iter(by_direction)).sigma
        if sigma == 0:
            return Skip(step, "sigma is 0: the directions do not differ")
        means = np.array([math.fsum(values) / len(values) for values in by_direction.values()])
        if not has_spread(means):
            return Skip(step, f"all {len(means)} directions had the same reward")
        weights = self.shaping(means, rng)
        return Update(
            step=step,
            seeds=tuple(direction.seed for direction in by_direction),
            rewards=tuple(means.tolist()),
            weights=tuple(weights.tolist()),
            alpha=self.alpha,
            sigma=sigma,
        )
