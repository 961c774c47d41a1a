"""What a generation shows of how the training goes: horizon, spread of the rewards, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eoh_esopt.experiments.flops import model_flops
from operators.records import Skip, Update
from operators.shaping import has_spread
from train_adapters.adapter import Episode


@dataclass(frozen=True)
class GenerationReport:
    """One generation. Means are over the episodes that count, and None where there is none.

    Attributes:
        generation: from 0.
        sigma: size of its perturbations.
        episodes: rollouts.
        endings: how many of them ended in which way.
        reward: mean reward.
        spread: population standard deviation of the directions' mean rewards.
        contrast: the best direction's mean reward minus the worst one's.
        flat_directions: share of the directions all of whose episodes had the same reward.
        flat: whether all directions had the same mean reward, so that there was nothing to learn.
        horizon: mean number of turns.
        minimum_horizon: mean of the fewest turns that solve the tasks played; None where that is not known.
        unparsed: share of the replies without an action.
        tokens: read and written.
        flops: of the model, by the count of `eoh_esopt.experiments.flops`; None for a model of unknown size.
        skipped: why no update was made; empty where one was.
        failure: the first reason of an episode that does not count; empty where all do.
    """

    generation: int
    sigma: float
    episodes: int
    endings: Mapping[str, int]
    reward: float | None
    spread: float | None
    contrast: float | None
    flat_directions: float | None
    flat: bool
    horizon: float | None
    minimum_horizon: float | None
    unparsed: float | None
    tokens: int
    flops: int | None
    skipped: str
    failure: str

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)


def report_of(
    generation: int,
    sigma: float,
    directions: Sequence[Sequence[Episode]],
    decision: Update | Skip,
    parameters: int | None,
) -> GenerationReport:
    """The figures of a generation.

    Args:
        generation: from 0.
        sigma: size of its perturbations.
        directions: the episodes of each.
        decision: what was done to the weights.
        parameters: weights of the model; None where that is not known.
    """
    episodes = [episode for direction in directions for episode in direction]
    counted = [episode for episode in episodes if episode.ending.counts]
    rewards = [[one.reward for one in direction if one.reward is not None] for direction in directions]
    means = np.array([np.mean(values) for values in rewards if values])
    tokens, turns = sum(one.tokens for one in episodes), sum(one.turns for one in episodes)
    least = [one.minimum_horizon for one in counted if one.minimum_horizon is not None]
    return GenerationReport(
        generation=generation,
        sigma=sigma,
        episodes=len(episodes),
        endings=dict(Counter(one.ending.value for one in episodes)),
        reward=float(np.mean([one.reward for one in counted])) if counted else None,
        spread=float(means.std()) if len(means) else None,
        contrast=float(means.max() - means.min()) if len(means) else None,
        flat_directions=float(np.mean([not has_spread(np.array(one)) for one in rewards if one])) if counted else None,
        flat=not len(means) or not has_spread(means),
        horizon=float(np.mean([one.turns for one in counted])) if counted else None,
        minimum_horizon=float(np.mean(least)) if least else None,
        unparsed=sum(one.unparsed for one in episodes) / turns if turns else None,
        tokens=tokens,
        flops=None if parameters is None else model_flops(parameters, tokens).forward,
        skipped=decision.reason if isinstance(decision, Skip) else "",
        failure=next((one.reason for one in episodes if not one.ending.counts), ""),
    )
