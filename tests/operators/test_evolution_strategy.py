"""Evolution strategies: which directions are asked for, what a batch teaches, and that it does teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from making import TASK, Blank, Climber, population, trial

from operators.errors import UserError
from operators.evolution_strategy import EvolutionStrategy
from operators.records import Direction, Skip, Status, Update
from operators.rewards import Rewards, Trial, ordered, paper
from operators.schedules import constant, cosine
from operators.search import Situation, search_operators
from operators.shaping import Shaping, shuffled, z_score

M1 = search_operators(TASK, prefill="none")["m1"]
DIRECTIONS = [Direction(seed, 0.1) for seed in range(1, 9)]


def strategy(samples: int = 1, shaping: Shaping = z_score) -> EvolutionStrategy:
    return EvolutionStrategy(M1, paper, cosine(1e-3, 0.0, 5), 5e-4, samples, shaping)


def situation(generation: int = 0, seed: int = 0) -> Situation:
    return Situation(population(6), generation, np.random.default_rng(seed))


def told(trials: Sequence[Trial], strategy: EvolutionStrategy) -> Update:
    update = strategy.tell(7, trials, np.random.default_rng(0))
    assert isinstance(update, Update)
    return update


def skipped(trials: Sequence[Trial], strategy: EvolutionStrategy) -> str:
    skip = strategy.tell(7, trials, np.random.default_rng(0))
    assert isinstance(skip, Skip)
    assert skip.step == 7
    return skip.reason


@pytest.mark.parametrize("count", [0, 1, 10, 11, 12])
@pytest.mark.parametrize("samples", [1, 2, 5])
def test_proposals_of_one_direction_stand_side_by_side(count: int, samples: int) -> None:
    """Scattered directions would cost a perturbation of all weights for each reply instead of each direction."""
    proposals = strategy(samples).ask(count, situation())
    assert len(proposals) == count
    directions = [proposal.direction for proposal in proposals]
    expected = list(dict.fromkeys(directions))
    assert directions == [direction for direction in expected for _ in range(samples)][:count]
    assert len(expected) == -(-count // samples)


def test_prompts_are_those_of_the_plain_operator() -> None:
    """Arms with and without learning would start from other prompts, and a comparison would not be paired."""
    learning = [replace(proposal, direction=None) for proposal in strategy(3).ask(12, situation())]
    assert learning == strategy(3).inner.ask(12, situation())


def test_single_samples_draw_their_own_parents() -> None:
    """One prompt for all directions would explore one parent a batch, unlike the paper."""
    assert len({proposal.parents for proposal in strategy().ask(20, situation())}) > 1


def test_sigma_follows_the_generation() -> None:
    """Two operators of one generation share sigma; a counter of its own would let it fall twice as fast."""
    for generation in range(5):
        for _ in range(2):
            proposals = strategy().ask(3, situation(generation))
            sigmas = {proposal.direction.sigma for proposal in proposals if proposal.direction}
            assert sigmas == {cosine(1e-3, 0.0, 5)(generation)}


def test_seeds_are_64_bits_and_follow_the_stream() -> None:
    """Seeds of 31 bits would collide between runs; seeds from elsewhere would not replay."""
    seeds = [p.direction.seed for p in strategy().ask(200, situation(seed=3)) if p.direction]
    assert len(set(seeds)) == 200
    assert max(seeds) > 2**62
    assert all(type(seed) is int for seed in seeds)
    assert seeds == [p.direction.seed for p in strategy().ask(200, situation(seed=3)) if p.direction]


def test_update_holds_the_mean_reward_of_each_direction() -> None:
    """Sums instead of means would favour the directions that happened to be asked more often."""
    one, two = DIRECTIONS[:2]
    update = told(
        [trial(9.0, direction=one), trial(5.0, direction=one), trial(11.0, direction=two)], strategy(samples=2)
    )
    assert update.seeds == (1, 2)
    assert update.rewards == (3.0, -1.0)
    assert update.weights == pytest.approx((1.0, -1.0))
    assert (update.step, update.alpha, update.sigma) == (7, 5e-4, 0.1)


def test_coefficients_are_alpha_over_g_times_the_weight() -> None:
    """A factor 1/sigma would let the step grow as sigma falls, and end a search with the largest steps."""
    for sigma in (1e-6, 0.1):
        trials = [trial(9.0 - i, direction=Direction(i, sigma)) for i in range(4)]
        update = told(trials, strategy())
        assert update.coefficients == tuple(5e-4 / 4 * weight for weight in update.weights)
        assert update.weights == pytest.approx(z_score(np.array([1.0, 2.0, 3.0, 4.0]), np.random.default_rng(0)))


def test_infrastructure_failures_are_left_out() -> None:
    """A worker of ours that dies must not count against the direction it was scoring."""
    ours = trial(status=Status.INFRASTRUCTURE, direction=DIRECTIONS[1])
    trials = [trial(9.0 - i, direction=direction) for i, direction in enumerate(DIRECTIONS[:3])]
    assert told([*trials, ours], strategy(samples=2)) == told(trials, strategy(samples=2))
    lost = [trials[0], replace(ours, proposal=trials[1].proposal), trials[2]]
    update = told(lost, strategy())
    assert update.seeds == (1, 3)
    assert update.coefficients == tuple(5e-4 / 2 * weight for weight in update.weights)


def test_batches_that_teach_nothing_are_skipped_and_say_why() -> None:
    """An update from nothing is a random step that no one asked for; a skip without a reason cannot be mended."""
    one, two = DIRECTIONS[:2]
    assert "no candidate" in skipped([trial(direction=one), trial(direction=two)], strategy())
    assert "1 scored directions" in skipped([trial(9.0, direction=one)], strategy())
    assert "same reward" in skipped([trial(9.0, direction=direction) for direction in DIRECTIONS], strategy())
    still = [trial(9.0 - i, direction=Direction(i, 0.0)) for i in range(3)]
    assert "sigma is 0" in skipped(still, strategy())
    assert skipped([], strategy())


def test_errors_of_the_caller_are_not_swallowed() -> None:
    """A reward that is not a number would make every weight not a number."""
    broken = EvolutionStrategy(M1, lambda trials: Rewards((1.0, float("nan"))), constant(0.1), 0.1)
    pair = [trial(9.0, direction=direction) for direction in DIRECTIONS[:2]]
    with pytest.raises(ValueError, match="finite"):
        broken.tell(0, pair, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no direction"):
        strategy().tell(0, [trial(9.0), trial(8.0)], np.random.default_rng(0))


@pytest.mark.parametrize(("alpha", "samples"), [(-1.0, 1), (float("nan"), 1), (float("inf"), 1), (0.1, 0)])
def test_settings_out_of_range_are_refused(alpha: float, samples: int) -> None:
    """A negative rate would unlearn; the message must come before the model is loaded."""
    with pytest.raises(UserError, match="must be"):
        EvolutionStrategy(M1, paper, constant(0.1), alpha, samples)


def share_left(shaping: Shaping, seed: int) -> float:
    """Of the distance to the target, after 150 updates."""
    climber, rng = Climber(20), np.random.default_rng(seed)
    start = climber.distance()
    learner = EvolutionStrategy(Blank(), ordered, cosine(0.1, 0.02, 150), 0.1, shaping=shaping)
    for step in range(150):
        proposals = learner.ask(16, Situation([], step, rng))
        trials = [
            replace(trial(climber.distance(proposal.direction), worst=0.0), proposal=proposal) for proposal in proposals
        ]
        update = learner.tell(step, trials, rng)
        assert isinstance(update, Update)
        climber.apply(update)
    return climber.distance() / start


def test_it_climbs_a_quadratic() -> None:
    """A sign, a mix-up of seeds or a wrong average would leave the model where it was, or move it away."""
    assert max(share_left(z_score, seed) for seed in range(3)) < 0.1


def test_it_does_not_climb_with_shuffled_rewards() -> None:
    """A control that learns would show that something other than the rewards moves the weights."""
    assert min(share_left(shuffled(z_score), seed) for seed in range(3)) > 0.5
