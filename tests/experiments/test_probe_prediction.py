"""What a probe predicts, against simulations of what it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from probe_simulation import SIGMAS, Truth, config, simulate
from scipy import stats

from eoh_esopt.experiments.probe_advice import REACH, Advice, advise, splits
from eoh_esopt.experiments.probe_parts import Parts, parts_of
from eoh_esopt.experiments.probe_prediction import linear_gain, planned, predict, shrinkage
from eoh_esopt.experiments.probe_record import Measurement
from eoh_esopt.experiments.probe_variance import REWARD
from eoh_esopt.reports.probe import sentences
from operators.shaping import z_score


def known_parts(truth: Truth) -> Parts:
    """Measured so well that only the arithmetic of the prediction can be wrong."""
    return parts_of(simulate(truth, np.random.default_rng(1), pairs=3000, samples=4), SIGMAS, 0.5)


def advice(truth: Truth, repetitions: int = 3, **changes: object) -> Advice:
    probe = simulate(truth, np.random.default_rng(2), pairs=400)
    return advise(replace(probe, config=config(**changes)), SIGMAS, repetitions)


def one_update(truth: Truth, rng: np.random.Generator, sigma: float, alpha: float, count: int, samples: int) -> float:
    """Gain in the linear reward of a real update in 50 dimensions."""
    gradient = np.full(50, (truth.slope / 50) ** 0.5)
    noise = rng.standard_normal((count, 50))
    rewards = sigma * noise @ gradient + truth.noise / samples**0.5 * rng.standard_normal(count)
    return float(alpha / count * z_score(rewards, rng) @ noise @ gradient)


@pytest.mark.parametrize(("count", "samples"), [(10, 4), (40, 1), (4, 10)])
def test_the_predicted_gain_is_that_of_real_updates(count: int, samples: int) -> None:
    """Else the whole prediction is off by a factor that nobody sees."""
    truth, rng = Truth(shared=0.9999, slope=1.0), np.random.default_rng(3)
    real = [one_update(truth, rng, 0.06, 0.03, count, samples) for _ in range(4000)]
    parts = known_parts(truth)
    assert parts.slope is not None
    plan = planned(config(directions=count, samples_per_direction=samples, sigma=0.06, sigma_final=0.06))
    predicted = linear_gain(parts, plan, parts.slope.estimate)[REWARD] / len(plan.steps)
    assert predicted == pytest.approx(np.mean(real), rel=0.06)


def test_runs_spread_by_the_accidents_of_their_updates() -> None:
    """Else a difference is called visible though runs differ more than that among themselves."""
    truth, rng = Truth(shared=0.9999, noise=0.5), np.random.default_rng(4)
    gains = [sum(one_update(truth, rng, 0.06, 0.03, 10, 4) for _ in range(10)) for _ in range(500)]
    parts = known_parts(replace(truth, noise=0.1))
    plan = replace(planned(config(sigma=0.06, sigma_final=0.06)), compared=10**9)
    assert predict(parts, plan, 3, 0).reward.spread_learning == pytest.approx(np.std(gains), rel=0.15)


def test_z_scores_of_few_directions_are_shorter() -> None:
    """Else gains with few directions are promised too high."""
    drawn = np.random.default_rng(5).standard_normal((20_000, 10)).std(axis=1)
    assert shrinkage(10) == pytest.approx(drawn.mean(), abs=0.005)
    assert shrinkage(10_000) == pytest.approx(1.0, abs=1e-3)


def test_the_chance_to_see_a_gain_is_that_of_simulated_comparisons() -> None:
    """Else the number of repetitions that a user plans is wrong."""
    found, rng = advice(Truth(slope=0.5)).as_planned, np.random.default_rng(6)
    change = found.reward
    learning = change.net - change.perturbed + change.spread_learning * rng.standard_normal((4000, 3))
    frozen = change.spread_frozen * rng.standard_normal((4000, 3))
    test = stats.ttest_ind(learning, frozen, axis=1)
    assert found.reward_seen.power == pytest.approx(np.mean(test.pvalue < 0.05), abs=0.04)


def test_a_gain_far_beyond_the_spread_is_seen_at_once() -> None:
    """Else figures that the noncentral t distribution cannot be computed for end in "not visible"."""
    seen = advice(Truth(slope=3.0, noise=1e-6)).as_planned.reward_seen
    assert (seen.power, seen.verdict) == (pytest.approx(1.0, abs=1e-6), "visible")
    assert seen.needed in (2, 3)


def test_the_published_plan_has_ten_updates_with_falling_sigma() -> None:
    """Else the prediction is for another run than the one that is planned."""
    plan = planned(config())
    assert [step.operator for step in plan.steps] == ["m1", "m2"] * 5
    assert (plan.steps[0].sigma, plan.steps[-1].sigma) == (0.06, 0.02)
    assert all(step.directions == 10 for step in plan.steps)
    assert plan.compared == 80


def test_a_batch_that_the_budget_cuts_short_has_fewer_directions() -> None:
    """Else the last update counts for more than it can do."""
    assert [step.directions for step in planned(config(budget=8 + 40 + 12)).steps] == [10, 3]


def test_a_strong_signal_is_visible_and_none_is_not() -> None:
    """Else the answer does not help to decide."""
    strong = advice(Truth(slope=3.0))
    assert strong.as_planned.reward_seen.verdict == "visible"
    assert strong.as_planned.reward.low > 0
    nothing = advice(Truth(slope=0.0))
    assert nothing.as_planned.reward_seen.verdict == "not visible"
    assert nothing.as_planned.reward.low <= 0
    assert nothing.as_planned.reward.gain == pytest.approx(0.0, abs=0.02)


def test_one_repetition_shows_nothing() -> None:
    """Else a single pair of runs is planned as a comparison."""
    found = advice(Truth(slope=3.0), repetitions=1)
    assert found.as_planned.reward_seen.power is None
    assert found.as_planned.reward_seen.verdict == "not visible"
    assert found.as_planned.reward_seen.needed is not None
    assert any("one run an arm shows no spread" in line for line in sentences(found))


def test_a_graded_reward_ends_at_1() -> None:
    """Else a long run is promised a reward that does not exist."""
    found = advice(Truth(slope=3.0, reward=0.9), budget=20_000).as_planned.reward
    assert found.before + found.gain == pytest.approx(1.0)
    assert found.before + found.high <= 1.0 + 1e-9


def test_harm_of_the_walk_is_taken_off() -> None:
    """Else a larger alpha always looks better."""
    gentle, harsh = advice(Truth()), advice(Truth(damage=0.05))
    assert harsh.as_planned.reward.walk > 10 * gentle.as_planned.reward.walk
    assert harsh.as_planned.reward.walk == pytest.approx(0.05 / 0.06**2 * 0.03**2, rel=0.15)


def test_recommended_settings_are_no_worse_than_the_plan_and_within_what_was_measured() -> None:
    """Else the advice leads out of the region that sigma was seen to be harmless in."""
    found = advice(Truth(damage=0.01))
    assert found.recommended is not None
    assert found.if_followed is not None
    assert found.if_followed.reward.net >= found.as_planned.reward.net
    assert found.recommended.learning_batch == found.config.learning_batch
    largest = max(found.parts.harmless)
    assert found.if_followed.plan.alpha * found.if_followed.plan.walk <= largest * (1 + 1e-9)
    assert found.if_followed.reward.gain <= REACH * largest * found.parts.steepness(REWARD) * (1 + 1e-9)


def test_a_sigma_that_harms_is_not_recommended() -> None:
    """Else the run writes broken replies."""
    found = advice(Truth(damage=0.2, slope=1.0))
    assert found.parts.harmless == (0.03,)
    assert found.recommended is not None
    assert found.recommended.sigma == 0.03


def all_invalid(reward: str) -> Measurement:
    probe = simulate(Truth(), np.random.default_rng(7))
    nothing = np.full((16, 2, 4), np.nan)
    cells = [replace(one, rewards=nothing, valid=np.zeros((16, 2, 4)), no_signal="none valid") for one in probe.cells]
    return replace(probe, cells=tuple(cells), config=config(reward=reward))


def test_a_model_that_writes_nothing_valid_gets_no_promise() -> None:
    """Else the probe fails, or recommends a run in which every update is skipped."""
    found = advise(all_invalid("paper"), SIGMAS, 3)
    assert found.recommended is None
    assert found.as_planned.reward.gain == 0.0
    assert found.as_planned.valid.before == 0.0
    assert found.as_planned.reward_seen.verdict == found.as_planned.valid_seen.verdict == "not visible"
    assert any("No candidate could be rewarded" in line for line in sentences(found))


def test_batches_without_a_valid_candidate_make_no_update() -> None:
    """Else the paper's reward is promised updates that are skipped."""
    parts = replace(known_parts(Truth()), needs_valid=True)
    assert parts.chance("m1", 0.06, 40) == pytest.approx(1 - 0.8**40, abs=1e-3)
    assert replace(parts, needs_valid=False).chance("m1", 0.06, 1) == 1.0


@pytest.mark.parametrize("batch", [2, 3, 5, 40, 41])
def test_every_split_has_the_whole_batch(batch: int) -> None:
    """Else the recommendation is for another budget."""
    assert all(g * s == batch for g, s in splits(batch))
    assert (batch, 1) in splits(batch)
