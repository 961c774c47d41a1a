"""The budget ledger: what a run has spent, in separate counters that are never inferred from one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass
class Ledger:
    """What was spent. Whole numbers that depend on the seed alone: a resumed run counts as one never stopped.

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
        parsed: candidates of the search whose reply held a program.
        duplicates: candidates of the search that are copies of an earlier one, be it valid or not.
        reflections: candidates of the search that went into a question for insights instead of a program.
        skip_reasons: how many updates were not made for each reason, which is named up to its first colon: details come
            after it. Never changed in place, so that copies stay what they were.
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
    parsed: int = 0
    duplicates: int = 0
    reflections: int = 0
    skip_reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.new_tokens

    def skip(self, reason: str) -> None:
        """Count an update that was not made."""
        self.skips += 1
        kind = skip_kind(reason)
        self.skip_reasons = {**self.skip_reasons, kind: self.skip_reasons.get(kind, 0) + 1}

    def as_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return asdict(self)

    @classmethod
    def of(cls, counters: Mapping[str, Any]) -> Ledger:
        """From counters by name; those that another release did not count stay 0, those unknown here are left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in counters.items() if name in known})


def skip_kind(reason: str) -> str:
    """The reason of a skip without its details."""
    return reason.partition(":")[0]
