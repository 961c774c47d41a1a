"""What a step of the baseline shows of how the training goes: rewards, groups without spread, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from operators.shaping import has_spread
from train_adapters.adapter import Episode

if TYPE_CHECKING:
    from train_adapters.grpo.trl_trainer import Learning


@dataclass(frozen=True)
class StepReport:
    """One step. Means are over the episodes that count.

    Attributes:
        step: from 0.
        episodes: rollouts.
        endings: how many of them ended in which way.
        reward: mean reward; None where no episode counts.
        flat_groups: share of the groups without spread of rewards, which teach nothing; None where no episode counts.
        turns: replies of all episodes.
        unparsed: those without an action.
        prompt_tokens: read.
        new_tokens: written.
        examples: replies that were learnt from.
        loss: of trl, mean over the step's updates.
        divergence: of the tokens from the model before training, mean; None without beta.
        clipped: share of the tokens whose ratio was clipped.
        learning_seconds: wall time of rollouts and updates.
        failure: the first reason of an episode that does not count; empty where all do.
    """

    step: int
    episodes: int
    endings: Mapping[str, int]
    reward: float | None
    flat_groups: float | None
    turns: int
    unparsed: int
    prompt_tokens: int
    new_tokens: int
    examples: int
    loss: float
    divergence: float | None
    clipped: float
    learning_seconds: float
    failure: str

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)


def step_report(learning: Learning, episodes: Sequence[Episode], group: int) -> StepReport:
    """The figures of a step.

    Args:
        learning: what trl's side says.
        episodes: group after group.
        group: episodes of a group.
    """
    groups = [episodes[first : first + group] for first in range(0, len(episodes), group)]
    rewards = [[one.reward for one in mine if one.reward is not None] for mine in groups]
    counted = [reward for mine in rewards for reward in mine]
    return StepReport(
        step=learning.step,
        episodes=len(episodes),
        endings=dict(Counter(one.ending.value for one in episodes)),
        reward=float(np.mean(counted)) if counted else None,
        flat_groups=float(np.mean([not has_spread(np.array(one)) for one in rewards if one])) if counted else None,
        turns=sum(one.turns for one in episodes),
        unparsed=sum(one.unparsed for one in episodes),
        prompt_tokens=sum(one.prompt_tokens for one in episodes),
        new_tokens=sum(one.new_tokens for one in episodes),
        examples=learning.examples,
        loss=learning.loss,
        divergence=learning.divergence,
        clipped=learning.clipped,
        learning_seconds=round(learning.seconds, 3),
        failure=next((one.reason for one in episodes if not one.ending.counts), ""),
    )


def step_line(report: StepReport, steps: int) -> str:
    """A step in one line."""
    reward = "-" if report.reward is None else f"{report.reward:.3f}"
    flat = "-" if report.flat_groups is None else f"{report.flat_groups:.0%}"
    divergence = "" if report.divergence is None else f"  divergence {report.divergence:.2e}"
    endings = ", ".join(f"{count} {name}" for name, count in sorted(report.endings.items()))
    return (
        f"GRPO step {report.step + 1} of {steps}  reward {reward}  groups without spread {flat}  "
        f"examples {report.examples}{divergence}  {endings}  {report.learning_seconds:.1f} s"
        f"{f'  such as: {report.failure}' if report.failure else ''}"
    )
