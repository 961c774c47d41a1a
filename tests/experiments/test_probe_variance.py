"""The analysis of variance behind a probe, on data whose components are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_simulation import SIGMAS, Truth, simulate

from eoh_esopt.experiments.probe_parts import Parts, parts_of
from eoh_esopt.experiments.probe_record import Cell
from eoh_esopt.experiments.probe_variance import CONFIDENCE, REWARD, VALID, component, level_of

PROBES = 300


def parts(truth: Truth, rng: np.random.Generator, samples: int = 4) -> Parts:
    return parts_of(simulate(truth, rng, samples=samples), SIGMAS, 0.5)


def near(found: list[float], true: float) -> bool:
    """Whether the mean is within four of its standard errors."""
    return bool(abs(np.mean(found) - true) < 4 * np.std(found, ddof=1) / len(found) ** 0.5)


def test_signal_is_recovered_without_bias_and_inside_its_interval() -> None:
    """Else sampling noise is sold as signal, or the interval promises more than was measured."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(PROBES):
        one = parts(Truth(), rng)
        found.append(one.signal(one.levels[1][0], 0))
    true = 0.06**2 * 0.5
    assert near([one.value for one in found], true)
    covered = np.mean([one.low <= true <= one.high for one in found])
    assert abs(covered - CONFIDENCE) < 4 * (CONFIDENCE * (1 - CONFIDENCE) / PROBES) ** 0.5


def test_slopes_are_pooled_over_sigmas_and_between_operators() -> None:
    """Else a prediction misses that an update from one operator's rewards moves the other's candidates too."""
    rng = np.random.default_rng(2)
    slopes = [parts(Truth(), rng).slope for _ in range(PROBES)]
    estimates = np.array([one.estimate for one in slopes if one is not None])
    assert near(list(estimates[:, 0, 0]), 0.5)
    assert near(list(estimates[:, 0, 2]), 0.5 * 0.8)  # reward of m1 and reward of m2
    assert near(list(estimates[:, 0, 1]), 0.5 / 2)  # reward and validity of m1
    assert near(list(estimates[:, 1, 3]), 0.5 * 0.8 / 4)  # validity of m1 and of m2


def test_draws_cover_the_true_slope() -> None:
    """Else the interval of a prediction is too narrow, and a run is started for nothing."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(PROBES):
        slope = parts(Truth(), rng).slope
        assert slope is not None
        low, high = np.quantile(slope.draws(500, rng)[:, 0, 0], [0.05, 0.95])
        covered.append(low <= 0.5 <= high)
    assert abs(np.mean(covered) - CONFIDENCE) < 0.07


def test_curvature_is_not_taken_for_signal() -> None:
    """Else directions that merely break replies, some more than others, would promise learning."""
    rng = np.random.default_rng(4)
    truth = Truth(slope=0.0, curvature=0.05, noise=0.05)
    probes = [parts(truth, rng) for _ in range(PROBES)]
    assert near([one.signal(one.levels[1][0], 0).value for one in probes], 0.0)
    assert near([one.curvature(one.levels[1][0], 0).value for one in probes], 0.05**2)


def test_damage_is_what_a_perturbation_costs() -> None:
    """Else a sigma that ruins the model is recommended."""
    rng = np.random.default_rng(5)
    probes = [parts(Truth(damage=0.04), rng) for _ in range(PROBES)]
    found = [one.damage(1) for one in probes]
    assert near([float(lost[REWARD]) for lost, _ in found], 0.04)
    assert np.std([lost[REWARD] for lost, _ in found]) == pytest.approx(
        np.mean([e[REWARD] for _, e in found]), rel=0.15
    )
    assert near([float(one.kappa[REWARD]) for one in probes], 0.04 / 0.06**2)


def test_a_single_sample_takes_the_noise_of_sigma_0() -> None:
    """Else a probe of one sample a direction says nothing, or calls all spread signal."""
    rng = np.random.default_rng(6)
    found = [parts(Truth(), rng, samples=1) for _ in range(PROBES)]
    assert all(one.levels[0][0].within is None for one in found)
    assert near([one.signal(one.levels[1][0], 0).value for one in found], 0.06**2 * 0.5)


def test_lost_candidates_are_left_out() -> None:
    """Else a failure of the sandbox would count as a bad reward, or end the probe."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(PROBES):
        probe = simulate(Truth(), rng)
        lost = rng.random((16, 2, 4)) < 0.2
        cells = [
            replace(one, rewards=np.where(lost, np.nan, one.rewards), valid=np.where(lost, np.nan, one.valid))
            for one in probe.cells
        ]
        one = parts_of(replace(probe, cells=tuple(cells)), SIGMAS, 0.5)
        found.append(one.signal(one.levels[1][0], 0).value)
    assert near(found, 0.06**2 * 0.5)


def test_a_pair_that_lost_a_side_is_dropped() -> None:
    """Else half a pair would show curvature as slope."""
    rewards = np.random.default_rng(8).random((4, 2, 3))
    rewards[2, 1] = np.nan
    level = level_of(Cell("m1", 0.1, rewards, np.where(np.isnan(rewards), np.nan, 1.0)))
    assert np.isnan(level.odd[2]).all()
    assert np.isfinite(level.odd[[0, 1, 3]]).all()
    assert level.share == pytest.approx(1 / 6)


def test_validity_is_known_where_nothing_could_be_rewarded() -> None:
    """Else a model that never writes a valid candidate shows as not measured."""
    nothing = np.full((3, 2, 2), np.nan)
    level = level_of(Cell("m1", 0.1, nothing, np.zeros((3, 2, 2)), "no candidate of the batch was valid"))
    assert not level.scored
    assert level.mean[VALID] == 0.0


@given(shift=st.floats(-100, 100), scale=st.floats(0.01, 100), seed=st.integers(0, 999))
def test_components_do_not_depend_on_the_rewards_zero_and_go_with_their_unit(
    shift: float, scale: float, seed: int
) -> None:
    """Else the answer would change with how a reward is written down."""
    values = np.random.default_rng(seed).random((6, 2, 3))

    def signal(rewards: np.ndarray) -> float:
        level = level_of(Cell("m1", 0.1, rewards, np.zeros_like(rewards)))
        assert level.within is not None
        return component(level.odd[:, REWARD], level.within[REWARD, REWARD] * level.share, centred=True).value

    assert signal(values * scale + shift) == pytest.approx(signal(values) * scale**2, rel=1e-6, abs=1e-9 * scale**2)
