"""What a running search tells whoever watches: a class of no-op methods to override."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eoh_esopt.engine.coevolution import ContextReport
from eoh_esopt.engine.ledger import Ledger
from operators.records import Candidate, Outcome, Skip, Update


@dataclass(frozen=True)
class BatchReport:
    """One finished operator batch.

    Attributes:
        generation: -1 for the start population.
        operator: the batch's operator.
        outcomes: one a candidate.
        decision: what was done to the weights; None for operators that do not learn.
        population: after the batch, best first.
        ledger: what has been spent so far.
    """

    generation: int
    operator: str
    outcomes: Sequence[Outcome]
    decision: Update | Skip | None
    population: Sequence[Candidate]
    ledger: Ledger


class Listener:
    """Hears of a search's progress. Every method does nothing unless overridden."""

    def on_start(self, facts: dict[str, Any]) -> None:
        """The run begins or is taken up again; `facts` is the log's start event."""

    def on_batch(self, generation: int, operator: str, count: int) -> None:
        """A batch of `count` candidates begins."""

    def on_replies(self, count: int) -> None:
        """`count` more replies were written."""

    def on_outcome(self, candidate: int, outcome: Outcome) -> None:
        """One candidate was evaluated."""

    def on_batch_end(self, report: BatchReport) -> None:
        """The batch is over and the weights have moved, if they did."""

    def on_context(self, report: ContextReport) -> None:
        """A generation is over, and the context for the next one is chosen."""

    def on_end(self, summary: dict[str, Any]) -> None:
        """The run is over."""
