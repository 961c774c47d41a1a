"""Momentum in seeds: the same steps as with a buffer of weights, without the buffer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import step_of

from operators.errors import UserError
from operators.momentum import SMALLEST_SHARE, momentum
from operators.records import Update

SIZE = 50


def made(count: int, rng: np.random.Generator, *, directions: int = 3) -> list[Update]:
    """Updates of different alphas and numbers of directions, as a run makes them."""
    updates = []
    for step in range(count):
        size = directions + step % 2
        seeds = tuple(int(one) for one in rng.integers(2**64, size=size, dtype=np.uint64))
        weights = tuple(rng.normal(size=size).tolist())
        updates.append(Update(step, seeds, weights, weights, float(rng.uniform(0.1, 1)), 0.1))
    return updates


def applied(updates: list[Update], beta: float) -> list[Update]:
    """What a run with momentum applies: each update sees those that were applied before it."""
    done: list[Update] = []
    for update in updates:
        done.append(momentum(beta)(done, update))
    return done


@settings(max_examples=30, deadline=None)
@given(beta=st.floats(0.0, 0.95), count=st.integers(1, 12), seed=st.integers(0, 99))
def test_steps_are_those_of_a_buffer(beta: float, count: int, seed: int) -> None:
    """Another sum would be something else than momentum, or inherit what was itself inherited, and blow up."""
    updates = made(count, np.random.default_rng(seed))
    buffer = np.zeros(SIZE)
    for plain, update in zip(updates, applied(updates, beta), strict=True):
        buffer = beta * buffer + step_of(plain, SIZE)
        cut = SMALLEST_SHARE * sum(np.abs(step_of(one, SIZE)) for one in updates)
        exact = all(beta**k >= SMALLEST_SHARE or beta == 0 for k in range(1, count))
        assert np.all(np.abs(step_of(update, SIZE) - buffer) <= (1e-12 if exact else cut))


def test_a_constant_gradient_is_applied_so_many_times_as_strongly() -> None:
    """Users who divide alpha by the gain would get another step than they meant."""
    for beta in (0.5, 0.8, 0.9, 0.95):
        same = [Update(step, (7, 8), (1.0, 0.0), (1.0, -1.0), 0.1, 0.1) for step in range(200)]
        step = step_of(applied(same, beta)[-1], SIZE)
        gain = step / step_of(same[0], SIZE)
        remembered = math.floor(math.log(SMALLEST_SHARE) / math.log(beta)) + 1
        assert gain == pytest.approx((1 - beta**remembered) / (1 - beta), rel=1e-9)
        assert gain == pytest.approx(1 / (1 - beta), rel=0.011), "what is cut off"


@pytest.mark.parametrize(("beta", "times"), [(0.0, 1), (0.5, 7), (0.9, 44)])
def test_the_noise_to_regenerate_is_what_is_documented(beta: float, times: int) -> None:
    """Momentum without an end would make each update of a long run dearer than the one before."""
    updates = made(60, np.random.default_rng(0), directions=4)
    last = applied(updates, beta)[-1]
    kept = updates[-times:]
    assert last.noise_seeds == tuple(seed for one in reversed(kept) for seed in one.seeds)


def test_random_gradients_add_up_as_in_theory() -> None:
    """The random walk of the weights would grow by another factor than 1 / (1 - beta**2) in variance."""
    beta, count = 0.8, 400
    steps = np.array([step_of(one, SIZE) for one in applied(made(count, np.random.default_rng(1)), beta)])
    plain = np.array([step_of(one, SIZE) for one in made(count, np.random.default_rng(1))])
    ratio = (steps**2).mean() / (plain**2).mean()
    standard_error = np.sqrt(2 / (count * (1 - beta) * SIZE / 2))  # steps share noise over about 1 / (1 - beta) of them
    assert ratio == pytest.approx(1 / (1 - beta**2), rel=5 * standard_error)


def test_without_momentum_an_update_is_left_as_it_is() -> None:
    """Histories of default runs would change."""
    [first, second] = made(2, np.random.default_rng(0))
    assert momentum(0.0)([first], second) == second


@pytest.mark.parametrize("beta", [-0.1, 1.0, math.nan, math.inf])
def test_a_share_out_of_range_is_refused(beta: float) -> None:
    """With 1 the steps never stop growing."""
    with pytest.raises(UserError, match=f"momentum .* not {beta}"):
        momentum(beta)
