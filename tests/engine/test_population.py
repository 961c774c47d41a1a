"""Which heuristics survive: the best with distinct objectives, best first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.engine.population import survivors
from operators.records import Candidate


def candidate(number: int, objective: float) -> Candidate:
    return Candidate(number, "e1", "", "", objective)


def test_the_best_stay_and_come_first() -> None:
    """Else selection by rank prefers the worst heuristics."""
    kept = survivors([candidate(0, 3.0), candidate(1, 1.0), candidate(2, 2.0)], 2)
    assert [one.id for one in kept] == [1, 2]


def test_of_equal_objectives_the_oldest_stays() -> None:
    """Else the population fills with copies of one heuristic, and members change without getting better."""
    kept = survivors([candidate(5, 1.0), candidate(3, 1.0), candidate(4, 2.0)], 3)
    assert [one.id for one in kept] == [3, 4]


def test_fewer_than_the_size_is_fine() -> None:
    """Else a start population of duplicates stops the search."""
    assert survivors([], 3) == ()
    assert len(survivors([candidate(0, 1.0)], 3)) == 1


@given(st.lists(st.sampled_from([1.0, 1.5, 2.0, 7.0]), max_size=20), st.integers(1, 5))
def test_the_order_of_arrival_does_not_matter(objectives: list[float], size: int) -> None:
    """Else a resumed run, or one with more workers, ends with another population."""
    everyone = [candidate(number, objective) for number, objective in enumerate(objectives)]
    kept = survivors(everyone, size)
    assert survivors(reversed(everyone), size) == kept
    assert survivors([*kept, *everyone], size) == kept
    assert [one.objective for one in kept] == sorted(set(objectives))[:size]
