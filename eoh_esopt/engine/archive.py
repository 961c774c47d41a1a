"""Everything a run has seen, to tell new candidates from duplicates.

A candidate is a duplicate of the earliest one with the same fingerprint (normalised AST), or, failing that, with the
same objective on every instance. The first kind is found before it costs an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from operators.records import Direction, Outcome, Proposal


class Archive:
    """Fingerprints and objectives in the order of the candidates' ids."""

    def __init__(self) -> None:
        self._by_fingerprint: dict[str, int] = {}
        self._by_objectives: dict[tuple[float, ...], int] = {}
        self._outcomes: dict[int, Outcome] = {}

    def known(self, fingerprint: str) -> int | None:
        """Id of the earliest candidate with this fingerprint."""
        return self._by_fingerprint.get(fingerprint)

    def reserve(self, candidate: int, fingerprint: str) -> None:
        """Enter a candidate that is about to be evaluated."""
        self._by_fingerprint.setdefault(fingerprint, candidate)

    def forget(self, candidates: Iterable[int]) -> None:
        """Take back the fingerprints of candidates whose evaluation failed for reasons of ours."""
        lost = set(candidates)
        if lost:
            self._by_fingerprint = {key: one for key, one in self._by_fingerprint.items() if one not in lost}

    def settle(self, candidate: int, outcome: Outcome) -> Outcome:
        """Enter an evaluated candidate; the outcome names the earlier one with the same objectives, if any."""
        if outcome.per_instance:
            first = self._by_objectives.setdefault(outcome.per_instance, candidate)
            if first != candidate:
                outcome = replace(outcome, duplicate_of=first)
        self._outcomes[candidate] = outcome
        return outcome

    def copy_of(self, original: int) -> Outcome:
        """The outcome of a duplicate of `original`."""
        outcome = self._outcomes[original]
        return replace(outcome, duplicate_of=original if outcome.duplicate_of is None else outcome.duplicate_of)


def fair_outcomes(ids: Sequence[int], proposals: Sequence[Proposal], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes as the directions of a batch are to be rewarded for them.

    Two directions that write the same new candidate in the same batch both wrote something new: which of them has the
    lower id says nothing about either. Within one direction only the first copy counts.
    """
    batch = set(ids)
    credited: set[tuple[Direction, int]] = set()
    fair = []
    for candidate, proposal, outcome in zip(ids, proposals, outcomes, strict=True):
        origin = candidate if outcome.duplicate_of is None else outcome.duplicate_of
        if proposal.direction is not None and origin in batch:
            key = (proposal.direction, origin)
            outcome = replace(outcome, duplicate_of=origin if key in credited else None)
            credited.add(key)
        fair.append(outcome)
    return fair
