"""What counts as a duplicate, and how the directions of one batch are credited for the same candidate."""

from __future__ import annotations

from dataclasses import replace

from eoh_esopt.engine.archive import Archive, fair_outcomes
from operators.records import Direction, Outcome, Proposal, Status

LOST = Outcome(Status.INFRASTRUCTURE, detail="lost")
FAILED = Outcome(Status.RAISED, detail="IndexError")


def scored(*objectives: float) -> Outcome:
    return Outcome(Status.OK, sum(objectives) / len(objectives), objectives)


def proposal(direction: int | None) -> Proposal:
    return Proposal("m1", "", "", (), None if direction is None else Direction(direction, 0.1))


def test_the_earliest_with_a_fingerprint_is_the_original() -> None:
    """Else a copy of a copy names a candidate that was never run."""
    archive = Archive()
    archive.reserve(3, "a")
    archive.reserve(4, "a")
    assert archive.known("a") == 3
    assert archive.known("b") is None


def test_the_same_objective_on_every_instance_is_a_duplicate() -> None:
    """Else the population fills with one heuristic in different words."""
    archive = Archive()
    assert archive.settle(1, scored(1.0, 3.0)).new
    assert archive.settle(2, scored(1.0, 3.0)).duplicate_of == 1
    assert archive.settle(3, scored(3.0, 1.0)).new, "the same mean is not the same heuristic"


def test_failures_are_never_duplicates_of_one_another() -> None:
    """Else the second failure of a batch is filed under an unrelated first one."""
    archive = Archive()
    archive.settle(1, FAILED)
    assert archive.settle(2, FAILED).duplicate_of is None


def test_a_copy_names_the_first_of_its_kind() -> None:
    """Else a copy of a duplicate counts as new, or points at a candidate that is no original."""
    archive = Archive()
    archive.settle(1, scored(1.0))
    archive.settle(2, scored(1.0))
    assert archive.copy_of(1) == Outcome(Status.OK, 1.0, (1.0,), duplicate_of=1)
    assert archive.copy_of(2).duplicate_of == 1


def test_a_lost_evaluation_does_not_keep_its_fingerprint() -> None:
    """Else a program that we failed to run counts as known for ever, and is never scored."""
    archive = Archive()
    archive.reserve(1, "a")
    archive.reserve(2, "b")
    archive.forget([1])
    assert (archive.known("a"), archive.known("b")) == (None, 2)


def test_two_directions_that_write_the_same_new_candidate_both_wrote_it() -> None:
    """Else the direction with the lower number is rewarded for the order of its number."""
    outcomes = [scored(1.0), Outcome(Status.OK, 1.0, (1.0,), duplicate_of=10)]
    fair = fair_outcomes([10, 11], [proposal(1), proposal(2)], outcomes)
    assert [outcome.new for outcome in fair] == [True, True]


def test_a_direction_is_credited_once_for_the_same_candidate() -> None:
    """Else a direction that repeats itself beats one that writes two different heuristics."""
    copies = [scored(1.0), Outcome(Status.OK, 1.0, (1.0,), duplicate_of=10)] * 2
    fair = fair_outcomes([10, 11, 12, 13], [proposal(one) for one in (1, 1, 2, 2)], [*copies[:2], *[copies[1]] * 2])
    assert [outcome.new for outcome in fair] == [True, False, True, False]


def test_a_copy_of_an_earlier_batch_is_new_for_nobody() -> None:
    """Else directions are rewarded for what the population has already."""
    old = Outcome(Status.OK, 1.0, (1.0,), duplicate_of=2)
    fair = fair_outcomes([10, 11], [proposal(1), proposal(2)], [old, old])
    assert [outcome.duplicate_of for outcome in fair] == [2, 2]


def test_without_directions_nothing_is_changed() -> None:
    """Else e1 and e2 count one candidate twice."""
    outcomes = [scored(1.0), Outcome(Status.OK, 1.0, (1.0,), duplicate_of=10), FAILED, LOST]
    assert fair_outcomes([10, 11, 12, 13], [proposal(None)] * 4, outcomes) == outcomes


def test_failures_stay_what_they_are() -> None:
    """Else a failure turns into something that is rewarded."""
    assert fair_outcomes([1, 2], [proposal(1), proposal(2)], [FAILED, LOST]) == [FAILED, LOST]


def test_a_direction_and_its_mirror_are_credited_apart() -> None:
    """Else the half of a pair that stands second is punished for a candidate that it wrote by itself."""
    sides = [Proposal("m1", "", "", (), Direction(5, sigma)) for sigma in (0.1, -0.1)]
    outcomes = [scored(1.0), replace(scored(1.0), duplicate_of=7)]
    assert [one.new for one in fair_outcomes([7, 8], sides, outcomes)] == [True, True]
