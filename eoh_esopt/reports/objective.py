"""How objectives are shown: as people read them, beside the values that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from problems.references import gap


@dataclass(frozen=True)
class Scale:
    """What the numbers of a run mean.

    Attributes:
        measure: what the objective is.
        maximise: whether larger is better; a search minimises the negated value then.
        references: known values by name, as people read them.
        ceiling: which of them nothing is known to beat; None where there is none.
    """

    measure: str
    maximise: bool
    references: Mapping[str, float]
    ceiling: str | None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Scale:
        """From the facts of a run's start, or from its summary."""
        return cls(facts["measure"], facts["maximise"], facts["references"], facts["ceiling"])

    @property
    def title(self) -> str:
        """The objective's name and sense."""
        return f"{self.measure}, {'higher' if self.maximise else 'lower'} is better"

    def natural(self, objective: float) -> float:
        """An objective of the search as people read it."""
        return -objective if self.maximise else objective

    def show(self, objective: float) -> str:
        """An objective of the search, as text."""
        return f"{self.natural(objective):.4f}"

    def gap(self, value: float) -> str:
        """How far a natural value is from the ceiling, in per cent; empty where there is no ceiling."""
        if self.ceiling is None:
            return ""
        return f"{gap(value, self.references[self.ceiling], self.maximise):.1%}"
