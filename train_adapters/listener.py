"""What a training tells whoever watches: a class of no-op methods to override."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_adapters.diagnostics import GenerationReport
from train_adapters.evaluation import Evaluation
from train_adapters.ledger import TrainLedger
from train_adapters.skills.verdict import Verdict


class TrainListener:
    """Hears of a training's progress. Every method does nothing unless overridden."""

    def on_start(self, facts: dict[str, Any]) -> None:
        """The training begins or is taken up again; `facts` is the log's start event."""

    def on_rollouts(self, what: str, count: int) -> None:
        """`count` episodes begin."""

    def on_episodes(self, count: int) -> None:
        """`count` more episodes are over."""

    def on_generation(self, report: GenerationReport, ledger: TrainLedger) -> None:
        """A generation is over and the weights have moved, if they did."""

    def on_evaluation(self, generation: int, evaluation: Evaluation) -> None:
        """An evaluation is over; `generation` is -1 before the first update."""

    def on_skill(self, proposal: Mapping[str, Any], verdict: Verdict | None) -> None:
        """An attempt to revise the skill is over; `proposal` is the log's event, `verdict` None where there was nothing
        to check."""

    def on_end(self, summary: dict[str, Any]) -> None:
        """The training is over."""
