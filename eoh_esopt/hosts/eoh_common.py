"""What EoH 0.1 and 0.2 have in common: how they keep a candidate, and how they ask their language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eoh_esopt.hosts.host import HostFacts, Parent, Written
from eoh_esopt.hosts.session import Session
from operators.errors import UserError

OPERATORS = ("e1", "e2", "m1", "m2", "m3")

KEY = "esopt"
"""Name of our notes in `other_inf`, where EoH leaves room for data of others."""

_SMALL = 0.01


def host_objective(objective: float) -> float:
    """An objective rounded as EoH does it, to five decimals; a small one to six digits.

    EoH's rounding makes 0.0 of 1.2e-6, and drops candidates as duplicates that are none.
    """
    return round(objective, 5) if abs(objective) >= _SMALL else float(f"{objective:.6g}")


EMPTY: Mapping[str, None] = {"algorithm": None, "code": None, "objective": None, "other_inf": None}
"""A candidate without a program, as EoH 0.1 keeps it."""


def individual(written: Written) -> dict[str, Any] | None:
    """A candidate as EoH keeps it; None where there is no program."""
    if written.draft is None or written.outcome is None:
        return None
    objective = written.outcome.objective
    return {
        "algorithm": written.draft.idea,
        "code": written.draft.code,
        "objective": None if objective is None else host_objective(objective),
        "other_inf": {KEY: dict(written.note)},
    }


def valid_ones(written: Sequence[Written]) -> list[dict[str, Any]]:
    """The candidates with an objective, as EoH keeps them."""
    return [one for one in map(individual, written) if one is not None and one["objective"] is not None]


def parent_of(one: Mapping[str, Any]) -> Parent:
    """A member of EoH's population; its objective is the one that was measured, where our note tells that."""
    other = one.get("other_inf")
    note = other.get(KEY) if isinstance(other, Mapping) else None
    measured = note.get("objective") if isinstance(note, Mapping) else None
    objective = measured if isinstance(measured, float) else one["objective"]
    return Parent(one["code"], one.get("algorithm") or "", float(objective))


def check_operators(facts: HostFacts) -> None:
    """Refuse operators that EoH would fail on at each attempt, without a word.

    Raises:
        UserError: one is unknown.
    """
    unknown = [name for name in facts.operators if name not in OPERATORS]
    if unknown:
        raise UserError(f"{facts.name} has no operator {unknown[0]!r}. Its operators: {', '.join(OPERATORS)}.")


def llm(session: Session) -> type[Any]:
    """A class to stand where EoH has its client of a language model."""

    class Llm:
        def __init__(self, *_: Any, **__: Any) -> None:
            """EoH asks its client for the sum of one and one here; ours was tested before."""

        def get_response(self, prompt: str) -> str:
            return session.ask(prompt)

    return Llm
