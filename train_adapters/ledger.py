"""What a training has spent, in separate counters that are never inferred from one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eoh_esopt.engine.ledger import skip_kind
from train_adapters.adapter import Episode
from train_adapters.failures import Failures, failures_of
from train_adapters.skills.writer import Cost


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
        late_steps: steps in all of these that a round did not wait for; alone here, it depends on the time they took.
        updates: ES updates applied.
        skips: ES updates not made.
        skip_reasons: how many for each reason, named up to its first colon.
        skill_episodes: rollouts of checks of the skill's revisions.
        skill_episode_tokens: tokens read and written in those.
        skill_calls: replies of the model that revises the skill.
        skill_prompt_tokens: tokens that it read.
        skill_new_tokens: tokens that it wrote.
        skill_failures: questions that it did not answer, however often it was asked.
    """

    episodes: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    evaluation_episodes: int = 0
    evaluation_tokens: int = 0
    late_steps: int = 0
    updates: int = 0
    skips: int = 0
    skip_reasons: Mapping[str, int] = field(default_factory=dict)
    failures: Failures = field(default_factory=dict)
    skill_episodes: int = 0
    skill_episode_tokens: int = 0
    skill_calls: int = 0
    skill_prompt_tokens: int = 0
    skill_new_tokens: int = 0
    skill_failures: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written in rollouts that were learnt from."""
        return self.prompt_tokens + self.new_tokens

    def skip(self, reason: str) -> None:
        """Count an update that was not made."""
        self.skips += 1
        kind = skip_kind(reason)
        self.skip_reasons = {**self.skip_reasons, kind: self.skip_reasons.get(kind, 0) + 1}

    def learn_from(self, episodes: Sequence[Episode]) -> None:
        """Count the rollouts of a generation."""
        self.failures = failures_of(episodes, self.failures)
        for episode in episodes:
            self.episodes += 1
            self.model_calls += episode.turns
            self.prompt_tokens += episode.prompt_tokens
            self.new_tokens += episode.new_tokens
            self.late_steps += episode.late

    def evaluate(self, episodes: Sequence[Episode]) -> None:
        """Count the rollouts of an evaluation."""
        self.failures = failures_of(episodes, self.failures)
        for episode in episodes:
            self.evaluation_episodes += 1
            self.evaluation_tokens += episode.tokens
            self.late_steps += episode.late

    def check_skill(self, episodes: Iterable[Episode]) -> None:
        """Count the rollouts of a check."""
        for episode in episodes:
            self.skill_episodes += 1
            self.skill_episode_tokens += episode.tokens

    def revise_skill(self, cost: Cost, failures: int) -> None:
        """Count what the model that revises the skill was asked."""
        self.skill_calls += cost.calls
        self.skill_prompt_tokens += cost.prompt_tokens
        self.skill_new_tokens += cost.new_tokens
        self.skill_failures += failures

    def as_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return asdict(self)
