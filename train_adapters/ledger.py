"""What a training has spent, in separate counters that are never inferred from one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eoh_esopt.engine.ledger import skip_kind
from train_adapters.adapter import Episode


@dataclass
class TrainLedger:
    """What was spent. Whole numbers that depend on the seed alone: a resumed run counts as one never stopped.

    Attributes:
        episodes: rollouts that were learnt from, or were to be.
        model_calls: replies written in them.
        prompt_tokens: tokens that the model read in them.
        new_tokens: tokens that the model wrote in them.
        evaluation_episodes: rollouts of evaluations.
        evaluation_tokens: tokens read and written in those.
        updates: ES updates applied.
        skips: ES updates not made.
        skip_reasons: how many for each reason, named up to its first colon.
    """

    episodes: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    evaluation_episodes: int = 0
    evaluation_tokens: int = 0
    updates: int = 0
    skips: int = 0
    skip_reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Tokens read and written in rollouts that were learnt from."""
        return self.prompt_tokens + self.new_tokens

    def skip(self, reason: str) -> None:
        """Count an update that was not made."""
        self.skips += 1
        kind = skip_kind(reason)
        self.skip_reasons = {**self.skip_reasons, kind: self.skip_reasons.get(kind, 0) + 1}

    def learn_from(self, episodes: Iterable[Episode]) -> None:
        """Count the rollouts of a generation."""
        for episode in episodes:
            self.episodes += 1
            self.model_calls += episode.turns
            self.prompt_tokens += episode.prompt_tokens
            self.new_tokens += episode.new_tokens

    def evaluate(self, episodes: Iterable[Episode]) -> None:
        """Count the rollouts of an evaluation."""
        for episode in episodes:
            self.evaluation_episodes += 1
            self.evaluation_tokens += episode.tokens

    def as_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return asdict(self)
