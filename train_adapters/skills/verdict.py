"""Whether a revision of the skill is kept: it is taken back where it lowers the reward beyond noise.

The same tasks are played with the same seeds on the same weights, once with the version before and once with the
revision: pairs of episodes that differ by the skill alone. Their differences are resampled as pairs, so the interval is
that of these tasks under other seeds; it says nothing of other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eoh_esopt.experiments.resampling import Resampling, paired_interval
from train_adapters.adapter import Episode

CONFIDENCE = 0.95
_DRAWS = 4_999
_LEAST_PAIRS = 2


@dataclass(frozen=True)
class Verdict:
    """What a check came to.

    Attributes:
        accepted: whether the revision is kept.
        reason: why not; empty where it is.
        pairs: of episodes that both count.
        before: mean reward with the version before; None without pairs.
        after: the same with the revision.
        low, high: confidence interval of the mean difference; None where all differences are the same.
    """

    accepted: bool
    reason: str
    pairs: int
    before: float | None
    after: float | None
    low: float | None = None
    high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)


def judged(before: Sequence[Episode], after: Sequence[Episode], seed: int) -> Verdict:
    """The verdict on a revision.

    Args:
        before: episodes with the version before.
        after: those with the revision, of the same tasks and samples in the same order.
        seed: of the resampling.
    """
    pairs = [
        (one.reward, other.reward)
        for one, other in zip(before, after, strict=True)
        if one.reward is not None and other.reward is not None
    ]
    if len(pairs) < _LEAST_PAIRS:
        return Verdict(False, f"only {len(pairs)} pairs of episodes count", len(pairs), None, None)
    rewards = np.array(pairs)
    differences = rewards[:, 1] - rewards[:, 0]
    low = high = None
    if np.ptp(differences) > 0:
        interval = paired_interval(differences, CONFIDENCE, Resampling(draws=_DRAWS, seed=seed))
        low, high = interval.low, interval.high
    worse = (differences.mean() if high is None else high) < 0
    reason = "the reward is lower, beyond noise" if worse else ""
    means = rewards.mean(axis=0).tolist()
    return Verdict(not worse, reason, len(pairs), means[0], means[1], low, high)
