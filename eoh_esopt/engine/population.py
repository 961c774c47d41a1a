"""Population management: the best N heuristics with distinct objectives."""

from __future__ import annotations

from collections.abc import Iterable

from operators.records import Candidate


def survivors(candidates: Iterable[Candidate], size: int) -> tuple[Candidate, ...]:
    """The best `size` candidates, best first; of equal objectives the oldest stays."""
    kept: dict[float, Candidate] = {}
    for candidate in sorted(candidates, key=lambda one: (one.objective, one.id)):
        kept.setdefault(candidate.objective, candidate)
    return tuple(kept.values())[:size]
