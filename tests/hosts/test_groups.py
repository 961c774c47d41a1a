"""The directions of one update, used up over several batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.hosts.groups import Groups, Unwritten
from operators import rewards
from operators.evolution_strategy import EvolutionStrategy
from operators.records import Direction, Outcome, Status
from operators.schedules import cosine
from operators.search import Situation


def groups(directions: int, samples: int, *, antithetic: bool = False) -> Groups:
    strategy = EvolutionStrategy(
        Unwritten("m1"),
        rewards.graded,
        cosine(1.0, 0.0, 10),
        alpha=0.1,
        samples_per_direction=samples,
        antithetic=antithetic,
    )
    return Groups(strategy, directions * samples)


def situation(one: Groups, generation: int = 0) -> Situation:
    return Situation((), generation, np.random.default_rng(one.begun))


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.lists(st.integers(0, 9), max_size=8))
def test_each_direction_is_used_as_often_as_it_should(directions: int, samples: int, batches: list[int]) -> None:
    """Without it an update could rest on directions with too few samples, or forget candidates."""
    one = groups(directions, samples)
    told: list[int] = []
    handed_out = 0
    for size in batches:
        for _ in range(size):
            group = one.current(situation(one))
            group.settle(handed_out, group.hand_out(), Outcome(Status.RAISED), 0.0)
            handed_out += 1
        for group in one.complete():
            trials = group.trials()
            counts: dict[Direction | None, int] = {}
            for trial in trials:
                counts[trial.proposal.direction] = counts.get(trial.proposal.direction, 0) + 1
            assert len(counts) == directions
            assert set(counts.values()) == {samples}
            told.append(len(trials))
    size = directions * samples
    assert sum(told) == handed_out // size * size
    assert sum(len(group.settled) for group in one.left_over()) == handed_out % size


def test_a_group_keeps_the_sigma_it_began_with() -> None:
    """Without it one update would mix perturbations of several sizes."""
    one = groups(3, 1)
    sigmas = []
    for generation in (0, 4, 8):
        proposal = one.current(situation(one, generation)).hand_out()
        assert proposal.direction is not None
        sigmas.append(proposal.direction.sigma)
    assert len(set(sigmas)) == 1


def test_pairs_stay_pairs() -> None:
    """Without it a host that draws one candidate at a time would break antithetic directions apart."""
    one = groups(4, 1, antithetic=True)
    drawn = [one.current(situation(one)).hand_out().direction for _ in range(4)]
    assert [direction and direction.sigma for direction in drawn] == [1.0, -1.0, 1.0, -1.0]
    assert len({direction and direction.seed for direction in drawn}) == 2


def test_trials_come_in_the_order_of_the_candidates() -> None:
    """Without it an update would depend on which evaluation ended first."""
    one = groups(3, 1)
    group = one.current(situation(one))
    proposals = [group.hand_out() for _ in range(3)]
    for candidate in (2, 0, 1):
        group.settle(candidate, proposals[candidate], Outcome(Status.RAISED), 0.0)
    assert [trial.proposal for trial in group.trials()] == proposals


def test_candidates_that_are_not_settled_keep_their_group_open() -> None:
    """Without it an update would be made of fewer directions than it takes after a budget cut a batch short."""
    one = groups(2, 1)
    group = one.current(situation(one))
    first, _ = group.hand_out(), group.hand_out()
    group.settle(0, first, Outcome(Status.RAISED), 0.0)
    assert one.complete() == []
    assert one.left_over() == [group]
    assert group.size == 2
