"""Adaptive sigma: perturbations just large enough that rewards tell directions apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from operators.errors import UserError
from operators.records import Update
from operators.shaping import has_spread

SigmaRule = Callable[[float, Sequence[Update]], float]
"""Takes the schedule's sigma and the updates made so far, oldest first; returns the sigma to use."""


def signal_share(rewards: Sequence[Sequence[float]]) -> float | None:
    """Share of the rewards' variance that belongs to the directions; the rest is what sampling adds.

    The intraclass correlation of a one-way layout with random effects, from mean squares between and within
    directions. By chance it may be below 0. None where nothing can be told: fewer than two directions, no direction
    with two samples, or no spread at all.
    Source: Shrout and Fleiss, "Intraclass correlations: uses in assessing rater reliability", 1979, ICC(1, 1).

    Args:
        rewards: for each direction, those of its samples.

    Returns:
        At most 1, and at least -1 / (samples of a direction - 1).
    """
    sizes = np.array([len(one) for one in rewards])
    total = int(sizes.sum())
    if len(sizes) < 2 or total <= len(sizes):
        return None
    if not has_spread(np.concatenate(rewards)):
        return None
    means = np.array([np.mean(one) for one in rewards])
    grand = float(sizes @ means) / total
    between = float(sizes @ (means - grand) ** 2) / (len(sizes) - 1)
    within = sum(float(np.var(one)) * len(one) for one in rewards) / (total - len(sizes))
    size = (total - float(sizes @ sizes) / total) / (len(sizes) - 1)  # of a direction, where they are not alike
    return (between - within) / (between + (size - 1) * within)


def signal_seeking(target: float = 0.5, rate: float = 0.2, limit: float = 4.0) -> SigmaRule:
    """The schedule's sigma times a factor that seeks a share of signal in the rewards.

    After each update the factor's logarithm moves by rate * (target - signal). With the share of signal below the
    target, rewards mostly say how the dice fell, and sigma grows; with it above, directions differ more than is
    needed, at the price of broken replies and of curvature, and sigma falls. In the linear regime an update's gain
    grows with the root of the signal's share in the directions' mean rewards: at one half for single samples, and
    two samples a direction, it has 82 % of what it can ever have. Updates without a measured signal, and skipped
    ones, leave the factor as it is.
    Source: sigma is raised under noise as in Hansen et al., "A method for handling uncertainty in evolutionary
    optimization", IEEE TEC 13 (2009); the smooth step towards a target as in the success rule of Igel et al., "A
    computational efficient covariance matrix update and a (1+1)-CMA for evolution strategies", GECCO 2006. The
    measure is `signal_share`.

    Args:
        target: share of signal to seek, in (0, 1).
        rate: step of the factor's logarithm for a share of signal that is off by one.
        limit: the factor stays in 1/limit .. limit, so that the schedule keeps its say.

    Raises:
        UserError: an argument is out of its range.
    """
    if not (0 < target < 1 and 0 < rate < math.inf and 1 <= limit < math.inf):
        raise UserError(f"target {target}, rate {rate} or limit {limit} of the adaptive sigma is out of its range.")
    bound = math.log(limit)

    def rule(scheduled: float, updates: Sequence[Update]) -> float:
        factor = 0.0
        for update in updates:
            if update.signal is not None:
                factor = min(max(factor + rate * (target - update.signal), -bound), bound)
        return scheduled * math.exp(factor)

    return rule
