"""Adaptive sigma: the share of signal is what it says, and sigma goes where directions can be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.adaptation import signal_seeking, signal_share
from operators.errors import UserError
from operators.records import Update


def batch(between: float, within: float, rng: np.random.Generator, sizes: Sequence[int]) -> list[list[float]]:
    """Rewards whose spread between directions and within them is given."""
    return [(rng.normal(0, between) + rng.normal(0, within, size)).tolist() for size in sizes]


def updates(signals: Sequence[float | None]) -> list[Update]:
    return [Update(i, (1, 2), (1.0, 0.0), (1.0, -1.0), 0.1, 0.1, (), one) for i, one in enumerate(signals)]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(2,) * 30, (4,) * 30, (1, 2, 3, 4, 2) * 6], ids=["pairs", "fours", "unequal"])
def test_the_share_of_signal_is_the_one_that_was_put_in(share: float, sizes: tuple[int, ...]) -> None:
    """Sigma would seek another share than the one it was told to."""
    rng = np.random.default_rng(0)
    found = [signal_share(batch(math.sqrt(share), math.sqrt(1 - share), rng, sizes)) for _ in range(600)]
    values = np.array(found, np.float64)
    standard_error = values.std() / math.sqrt(len(values))
    assert values.mean() == pytest.approx(share, abs=4 * standard_error + 0.012), "a ratio has a bias of order 1 / G"


@given(seed=st.integers(0, 999), factor=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_the_share_does_not_depend_on_the_unit(seed: int, factor: float, offset: float) -> None:
    """Objectives in other units would be searched with another sigma."""
    rewards = batch(1.0, 1.0, np.random.default_rng(seed), (2, 3, 1, 2))
    changed = [[factor * one + offset for one in group] for group in rewards]
    assert signal_share(changed) == pytest.approx(signal_share(rewards), abs=1e-5)


def test_the_share_ends_at_its_limits() -> None:
    """A share above one, or a division by zero, would throw sigma far off."""
    assert signal_share([[1.0, 1.0], [2.0, 2.0]]) == 1
    assert signal_share([[1.0, 2.0], [2.0, 1.0]]) == -1
    assert signal_share([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0]]) == pytest.approx(-1 / 2)


@pytest.mark.parametrize("rewards", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[0.1, 0.1, 0.1], [0.1, 0.1]]])
def test_where_nothing_can_be_told_there_is_no_share(rewards: list[list[float]]) -> None:
    """Zero would be taken for noise, and sigma would grow for no reason."""
    assert signal_share(rewards) is None


def run(start: float, steps: int, seed: int, limit: float = 100.0) -> list[float]:
    """Sigmas of a search on a slope of 2 under sampling noise of 0.1, with 16 directions of two samples each."""
    rng, rule = np.random.default_rng(seed), signal_seeking(limit=limit)
    done: list[Update] = []
    sigmas = []
    for _ in range(steps):
        sigmas.append(rule(start, done))
        done += updates([signal_share(batch(2 * sigmas[-1], 0.1, rng, (2,) * 16))])
    return sigmas


@pytest.mark.parametrize("start", [0.05 / 8, 0.05, 0.05 * 8])
def test_sigma_goes_to_where_signal_equals_noise(start: float) -> None:
    """A rule that went astray would drown learning in noise, or break the model, where the schedule alone did not."""
    ends = np.array([np.log(run(start, 160, seed)[80:]).mean() for seed in range(12)])
    standard_error = ends.std() / math.sqrt(len(ends))
    assert ends.mean() == pytest.approx(math.log(0.05), abs=4 * standard_error + 0.1), (
        "0.1 for the bias of small batches"
    )


def test_the_schedule_keeps_its_say() -> None:
    """Noise alone would drive sigma up without an end, and a falling schedule would no longer fall."""
    rule = signal_seeking(limit=4.0)
    assert rule(0.1, updates([-1.0] * 50)) == pytest.approx(0.4)
    assert rule(0.1, updates([1.0] * 50)) == pytest.approx(0.025)
    assert rule(0.1, updates([-1.0] * 50 + [1.0] * 20)) < 0.1, "no memory of steps beyond the limit"
    assert rule(0.0, updates([-1.0] * 50)) == 0


def test_it_starts_on_the_schedule_and_stays_there_without_a_measurement() -> None:
    """Runs with one sample a direction would see sigma move for no reason."""
    rule = signal_seeking()
    assert rule(0.1, []) == 0.1
    assert rule(0.1, updates([None] * 9)) == 0.1
    assert rule(0.1, updates([None, 0.0, None])) == rule(0.1, updates([0.0]))


@given(st.lists(st.none() | st.floats(-1, 1), max_size=30))
def test_less_signal_never_means_less_sigma(signals: list[float | None]) -> None:
    """A rule with the wrong sign would shrink sigma until only noise is left."""
    rule = signal_seeking()
    weaker = [None if one is None else one - 0.1 for one in signals]
    assert rule(0.1, updates(weaker)) >= rule(0.1, updates(signals))


@pytest.mark.parametrize("wrong", [{"target": 0.0}, {"target": 1.0}, {"rate": 0.0}, {"limit": 0.5}, {"rate": math.nan}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    """A target that cannot be reached would pin sigma to its limit."""
    with pytest.raises(UserError, match="out of its range"):
        signal_seeking(**wrong)
