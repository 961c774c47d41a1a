"""Evolution strategies around any operator: directions for its proposals, an update from their outcomes.

theta' = theta + sigma_t * eps(seed) for each direction; rewards R_i of what was written under it; then
theta <- theta + (alpha / G) * sum_i w_i * eps_i with shaped rewards w. There is no factor 1/sigma: alpha is the
effective step. This object draws seeds and computes w; it never sees a weight. With sigma_T = 0 it serves a search,
with sigma_T > 0 the training of agents.

Antithetic directions come in pairs, theta + sigma_t * eps and theta - sigma_t * eps: what both have in common (the
reward's even part, such as curvature) falls out of the update, where a pair is one seed.
Source: Agentic-ESOpt, section 3 and appendix D.5.1; Salimans et al., arXiv 1703.03864; for pairs also Brockhoff et
al., "Mirrored sampling and sequential selection for evolution strategies", PPSN 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from operators.adaptation import SigmaRule, signal_share
from operators.errors import UserError
from operators.records import Direction, Proposal, Skip, Update
from operators.rewards import Reward, Trial
from operators.schedules import Schedule
from operators.search import Operator, Situation
from operators.shaping import Shaping, has_spread, z_score

NO_SIGMA = "sigma is 0: the directions do not differ"


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
        antithetic: whether directions come in pairs. Of an odd number the last one has no mirror.
        adapt: moves sigma off its schedule by what earlier updates measured; None to keep to the schedule.
    """

    inner: Operator
    reward: Reward
    sigma: Schedule
    alpha: float
    samples_per_direction: int = 1
    shaping: Shaping = z_score
    antithetic: bool = False
    adapt: SigmaRule | None = None

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
        if self.adapt is not None:
            sigma = self.adapt(sigma, situation.updates)
        samples = self.samples_per_direction
        directions = self._directions(-(-count // samples), sigma, situation.rng)
        return [replace(proposal, direction=directions[index // samples]) for index, proposal in enumerate(written)]

    def _directions(self, count: int, sigma: float, rng: np.random.Generator) -> list[Direction]:
        """New directions, or new pairs of a direction and its mirror."""
        signed = (sigma, -sigma) if self.antithetic else (sigma,)
        seeds = rng.integers(2**64, size=-(-count // len(signed)), dtype=np.uint64)
        return [Direction(int(seed), one) for seed in seeds for one in signed][:count]

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
        sigma = abs(next(iter(by_direction)).sigma)
        if sigma == 0:
            return Skip(step, NO_SIGMA)
        means = np.array([math.fsum(values) / len(values) for values in by_direction.values()])
        if not has_spread(means):
            return Skip(step, f"all {len(means)} directions had the same reward")
        by_seed = _merged(tuple(by_direction), means.tolist(), self.shaping(means, rng).tolist())
        if not any(weight for _, weight in by_seed.values()):
            return Skip(step, "all weights are 0: each direction had the same reward as its mirror")
        return Update(
            step=step,
            seeds=tuple(by_seed),
            rewards=tuple(reward for reward, _ in by_seed.values()),
            weights=tuple(weight for _, weight in by_seed.values()),
            alpha=self.alpha,
            sigma=sigma,
            signal=None if self.adapt is None else signal_share(tuple(by_direction.values())),
        )


def _merged(
    directions: Sequence[Direction], rewards: Sequence[float], weights: Sequence[float]
) -> dict[int, tuple[float, float]]:
    """Mean reward and weight of each seed: a direction and its mirror move the weights along the same noise.

    The update divides by the number of seeds where the definition divides by the number of directions, so a seed's
    weight is the signed sum of its directions' weights times seeds / directions: half the difference for a pair.
    """
    sides: dict[int, list[tuple[float, float]]] = {}
    for direction, reward, weight in zip(directions, rewards, weights, strict=True):
        sides.setdefault(direction.seed, []).append((reward, math.copysign(1.0, direction.sigma) * weight))
    scale = len(sides) / len(directions)
    return {
        seed: (sum(reward for reward, _ in found) / len(found), scale * sum(weight for _, weight in found))
        for seed, found in sides.items()
    }
