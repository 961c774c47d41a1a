"""Co-evolution: after each generation the model renews the insights that its own prompts show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from operators.context import Context, ContextHistory, Failure
from operators.records import Status
from operators.rewards import Reward, Trial
from operators.search import LEARNING


@dataclass(frozen=True)
class ContextReport:
    """What became of the context after a generation.

    Attributes:
        generation: the generation.
        tried: the version that it was written with.
        reward: mean reward of its m1 and m2 candidates; None where none could be rewarded.
        reverted: whether that version was taken back.
        context: the version that the next generation is written with.
    """

    generation: int
    tried: int
    reward: float | None
    reverted: bool
    context: Context

    def as_fields(self) -> dict[str, Any]:
        """As an event holds it."""
        return {
            "generation": self.generation,
            "tried": self.tried,
            "reward": self.reward,
            "reverted": self.reverted,
            "version": self.context.version,
            "insights": list(self.context.insights),
        }


class CoEvolution:
    """The context of one search, and the candidates of the generation in work.

    Args:
        reward: what the weights learn from, or would.
    """

    def __init__(self, reward: Reward) -> None:
        self._reward = reward
        self._history = ContextHistory()
        self._rewards: list[float] = []
        self._failures: list[Failure] = []

    @property
    def context(self) -> Context:
        """The version that is shown."""
        return self._history.current

    @property
    def failures(self) -> Sequence[Failure]:
        """Candidates of this generation that were not valid, the latest first."""
        return self._failures[::-1]

    def note(self, operator: str, ideas: Sequence[str], trials: Sequence[Trial]) -> None:
        """Hear of one batch of the generation."""
        if operator in LEARNING:
            self._rewards += [one for one in self._reward(trials).values if one is not None]
        for idea, trial in zip(ideas, trials, strict=True):
            if not trial.outcome.valid and trial.outcome.status is not Status.INFRASTRUCTURE:
                reason = trial.outcome.status.value.replace("_", " ")
                detail = trial.outcome.detail
                self._failures.append(Failure(idea or "no idea", f"{reason}: {detail}" if detail else reason))

    def judge(self) -> tuple[int, float | None, bool]:
        """End the generation: its version, its mean reward, and whether the version was taken back."""
        tried = self.context.version
        reward = float(np.mean(self._rewards)) if self._rewards else None
        reverted = self._history.judge(reward)
        self._rewards, self._failures = [], []
        return tried, reward, reverted

    def renew(self, insights: tuple[str, ...]) -> None:
        """Show these from now on."""
        self._history.renew(insights)
