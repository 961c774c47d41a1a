"""Statistics of the update under the real noise: it points uphill on average, and each variant does what it is for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import Blank, Climber, eps, step_of, trial
from numpy.typing import NDArray

from operators.adaptation import signal_seeking
from operators.evolution_strategy import EvolutionStrategy
from operators.momentum import momentum
from operators.records import Direction, Skip, Update
from operators.rewards import sample
from operators.schedules import constant, cosine
from operators.search import Situation
from operators.shaping import Shaping, centred_rank, z_score

SIZE = 20
SIGMA = 0.5
Score = Callable[[NDArray[np.float64]], float]
"""The reward of weights that were moved from zero by so much."""

SLOPE = np.linspace(-1.0, 1.0, SIZE)
UPHILL = SLOPE / np.linalg.norm(SLOPE)
CURVES = np.linspace(1.0, 9.0, SIZE)


def linear(moved: NDArray[np.float64]) -> float:
    return float(SLOPE @ moved)


def quadratic(moved: NDArray[np.float64]) -> float:
    """A slope under a much stronger even part."""
    return float(SLOPE @ moved - CURVES @ moved**2)


def learner(*, antithetic: bool = False, shaping: Shaping = z_score, alpha: float = 1.0) -> EvolutionStrategy:
    return EvolutionStrategy(Blank(), sample, constant(SIGMA), alpha, shaping=shaping, antithetic=antithetic)


def decide(one: EvolutionStrategy, score: Score, rng: np.random.Generator, count: int = 10) -> Update | Skip:
    """What one batch of directions around zero teaches; it is never far enough from zero to be invalid."""
    trials = []
    for proposal in one.ask(count, Situation([], 0, rng)):
        assert proposal.direction is not None
        moved = proposal.direction.sigma * eps(proposal.direction.seed, SIZE)
        trials.append(replace(trial(-score(moved)), proposal=proposal))
    return one.tell(0, trials, rng)


def steps(one: EvolutionStrategy, score: Score, batches: int = 500) -> NDArray[np.float64]:
    """The steps of many batches from the same weights: shape (batches, weights)."""
    rng = np.random.default_rng(2024)
    decisions = [decide(one, score, rng) for _ in range(batches)]
    return np.array([step_of(update, SIZE) for update in decisions if isinstance(update, Update)])


def mean_chi(degrees: int, count: int) -> float:
    """Mean of the root mean square of `count` normals with so many degrees of freedom."""
    ratio = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    return math.sqrt(2 / count) * ratio


@pytest.mark.parametrize(("antithetic", "expected"), [(False, mean_chi(9, 10)), (True, mean_chi(5, 5))])
def test_the_mean_step_is_along_the_gradient_and_as_long_as_in_theory(antithetic: bool, expected: float) -> None:
    """A biased update goes astray however many directions are paid for; a wrong factor makes alpha mean something else.

    On a slope the step along the gradient is alpha times the standard deviation of the directions along it.
    """
    found = steps(learner(antithetic=antithetic), linear)
    errors = found.std(axis=0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected * UPHILL) < 4.5 * errors)
    along = found @ UPHILL
    assert along.mean() == pytest.approx(expected, abs=4 * along.std() / math.sqrt(len(along)))


@pytest.mark.parametrize("shaping", [z_score, centred_rank])
@pytest.mark.parametrize("antithetic", [False, True])
def test_curvature_does_not_turn_the_mean_step(antithetic: bool, shaping: Shaping) -> None:
    """The even part of the reward is the same on both sides: a step that it turns is not along the gradient."""
    found = steps(learner(antithetic=antithetic, shaping=shaping), quadratic)
    mean, errors = found.mean(axis=0), found.std(axis=0) / math.sqrt(len(found))
    across = mean - (mean @ UPHILL) * UPHILL
    assert np.all(np.abs(across) < 4.5 * errors)
    assert mean @ UPHILL > 4 * math.sqrt(((UPHILL * errors) ** 2).sum())


def noise_to_signal(found: NDArray[np.float64]) -> float:
    """Variance of the steps over the squared length of their mean along the gradient."""
    return float(found.var(axis=0).sum() / (found @ UPHILL).mean() ** 2)


def test_pairs_see_through_curvature() -> None:
    """Pairs cost half of the distinct directions: without this they would be a loss."""
    one_sided = noise_to_signal(steps(learner(), quadratic))
    paired = noise_to_signal(steps(learner(antithetic=True), quadratic))
    assert paired < one_sided / 3
    flat = noise_to_signal(steps(learner(antithetic=True), linear)) / noise_to_signal(steps(learner(), linear))
    assert 1 < flat < 3, "what they cost where there is no curvature, as documented"


def test_an_even_reward_moves_nothing() -> None:
    """At the top of a hill every step is a random one; pairs see that there is nothing to learn."""
    rng = np.random.default_rng(0)

    def even(moved: NDArray[np.float64]) -> float:
        return float(-(moved**2).sum())

    paired = decide(learner(antithetic=True), even, rng)
    assert isinstance(paired, Skip)
    assert "mirror" in paired.reason
    assert isinstance(decide(learner(), even, rng), Update)


def test_pairs_stand_side_by_side_with_one_seed_each() -> None:
    """A mirror under another seed would be a direction of its own, and curvature would stay in the update."""
    for count in (2, 9, 10):
        proposals = learner(antithetic=True).ask(count, Situation([], 0, np.random.default_rng(1)))
        directions = [proposal.direction for proposal in proposals if proposal.direction]
        assert [one.sigma for one in directions] == [SIGMA, -SIGMA] * (count // 2) + [SIGMA] * (count % 2)
        seeds = [one.seed for one in directions]
        assert seeds[::2][: count // 2] == seeds[1::2]
        assert len(set(seeds)) == -(-count // 2)


@given(
    rewards=st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=6),
    lost=st.sets(st.integers(0, 11), max_size=2),
    shaping=st.sampled_from([z_score, centred_rank]),
)
def test_a_merged_pair_is_the_definitions_update(
    rewards: list[tuple[float, float]], lost: set[int], shaping: Shaping
) -> None:
    """Half the noise is regenerated; the weights have to come out as if each direction had been added by itself.

    Also where one of a pair was lost: the other one then counts for itself.
    """
    directions = [Direction(seed, sign * SIGMA) for seed in range(len(rewards)) for sign in (1, -1)]
    flat = [one for pair in rewards for one in pair]
    kept = [i for i in range(len(flat)) if i not in lost]
    trials = [trial(-flat[i], direction=directions[i]) for i in kept]
    update = learner(shaping=shaping, antithetic=True).tell(0, trials, np.random.default_rng(0))
    if isinstance(update, Skip):
        return
    weights = shaping(np.array([flat[i] for i in kept]), np.random.default_rng(0))
    expected = np.zeros(SIZE)
    for i, weight in zip(kept, weights, strict=True):
        expected += 1.0 / len(kept) * weight * math.copysign(1, directions[i].sigma) * eps(directions[i].seed, SIZE)
    assert step_of(update, SIZE) == pytest.approx(expected, abs=1e-9)
    assert len(set(update.seeds)) == len(update.seeds) <= len(rewards)
    assert update.sigma == SIGMA
    both = [seed for seed in update.seeds if {2 * seed, 2 * seed + 1} <= set(kept)]
    for seed in both:
        assert update.rewards[update.seeds.index(seed)] == pytest.approx(sum(rewards[seed]) / 2)


def share_left(one: EvolutionStrategy, beta: float, seed: int) -> float:
    """Of the distance to the target, after 150 updates with two samples a direction and some noise in the rewards."""
    climber, rng = Climber(SIZE), np.random.default_rng(seed)
    start = climber.distance()
    done: list[Update] = []
    for step in range(150):
        proposals = one.ask(32, Situation([], step, rng, done))
        trials = [
            replace(trial(climber.distance(proposal.direction) + rng.normal(0, 0.1)), proposal=proposal)
            for proposal in proposals
        ]
        update = one.tell(step, trials, rng)
        assert isinstance(update, Update)
        done.append(momentum(beta)(done, update))
        climber.apply(done[-1])
    return climber.distance() / start


VARIANTS: dict[str, tuple[float, Shaping, bool, bool, float]] = {
    "pairs": (0.1, z_score, True, False, 0.0),
    "ranks": (0.3, centred_rank, False, False, 0.0),
    "momentum": (0.05, z_score, False, False, 0.5),
    "adaptive": (0.1, z_score, False, True, 0.0),
    "all": (0.15, centred_rank, True, True, 0.5),
}


@pytest.mark.parametrize(("alpha", "shaping", "antithetic", "adaptive", "beta"), VARIANTS.values(), ids=VARIANTS)
def test_every_variant_climbs_a_quadratic(
    alpha: float, shaping: Shaping, antithetic: bool, adaptive: bool, beta: float
) -> None:
    """A sign or a seed that is mixed up would leave the model where it was, or move it away."""
    adapt = signal_seeking() if adaptive else None
    one = EvolutionStrategy(Blank(), sample, cosine(0.1, 0.02, 150), alpha, 2, shaping, antithetic, adapt)
    assert max(share_left(one, beta, seed) for seed in range(3)) < 0.1


def test_only_adaptive_runs_note_the_signal() -> None:
    """Histories of runs without it would change."""
    rng = np.random.default_rng(0)
    plain = EvolutionStrategy(Blank(), sample, constant(SIGMA), 1.0, 2)
    for one, noted in ((plain, False), (replace(plain, adapt=signal_seeking()), True)):
        update = decide(one, lambda moved: linear(moved) + float(rng.normal()), np.random.default_rng(3))
        assert isinstance(update, Update)
        assert (update.signal is not None) == noted
