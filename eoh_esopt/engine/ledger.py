"""The budget ledger: what a run has spent, in separate counters that are never inferred from one another."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Ledger:
    """What was spent.

    Attributes:
        start_candidates: attempts for the start population; the budget does not count them.
        candidates: attempts of the search; the budget is a number of these.
        model_calls: replies written, start population included.
        prompt_tokens: tokens read by the model.
        new_tokens: tokens written by the model.
        evaluations: programs run in the sandbox; duplicates and replies without a program cost none.
        valid: candidates of the search that solved every instance.
        new: valid candidates of the search that were no duplicates.
        updates: ES updates applied.
        skips: ES updates not made.
    """

    start_candidates: int = 0
    candidates: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    evaluations: int = 0
    valid: int = 0
    new: int = 0
    updates: int = 0
    skips: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counters by name."""
        return asdict(self)
