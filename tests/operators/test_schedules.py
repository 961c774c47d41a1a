"""Schedules of sigma: end points are met exactly, and nothing happens outside them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.schedules import Schedule, constant, cosine, linear, warm_up

FALLING: list[Callable[[float, float, int], Schedule]] = [linear, cosine]


@pytest.mark.parametrize("schedule", FALLING)
@given(
    first=st.floats(0, 1, allow_subnormal=False), last=st.floats(0, 1, allow_subnormal=False), steps=st.integers(2, 99)
)
def test_every_value_lies_between_the_end_points(
    schedule: Callable[[float, float, int], Schedule], first: float, last: float, steps: int
) -> None:
    """A sigma outside its range would perturb more than the user allowed."""
    low, high = min(first, last), max(first, last)
    values = [schedule(first, last, steps)(step) for step in range(steps)]
    assert all(low - 1e-15 <= value <= high + 1e-15 for value in values)
    pairs = list(itertools.pairwise(values))
    assert all(a >= b - 1e-15 for a, b in pairs) or all(a <= b + 1e-15 for a, b in pairs)


@pytest.mark.parametrize("schedule", FALLING)
def test_first_and_last_step_are_exact(schedule: Callable[[float, float, int], Schedule]) -> None:
    """A run that ends at 1e-19 instead of 0 would make an update from directions that do not differ."""
    for first, last, steps in ((1e-3, 0.0, 25), (0.06, 0.02, 7), (1e-3, 2.5e-4, 100), (0.1, 0.3, 2)):
        assert schedule(first, last, steps)(0) == first
        assert schedule(first, last, steps)(steps - 1) == last


def test_cosine_follows_the_formula() -> None:
    """Another curve, or a period of T instead of T-1 steps, would not be the published schedule."""
    values = cosine(1e-3, 2e-4, 5)
    for step in range(5):
        expected = 2e-4 + (1e-3 - 2e-4) * (1 + math.cos(math.pi * step / 4)) / 2
        assert values(step) == pytest.approx(expected, rel=1e-12)
    assert cosine(1.0, 0.0, 3)(1) == pytest.approx(0.5)


def test_linear_is_a_line() -> None:
    """A bent line would give other sigmas than the option's name promises."""
    assert [linear(1.0, 0.0, 5)(step) for step in range(5)] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0])


@pytest.mark.parametrize("schedule", FALLING)
@pytest.mark.parametrize("steps", [0, 1])
def test_one_step_takes_the_first_value(schedule: Callable[[float, float, int], Schedule], steps: int) -> None:
    """A run of one generation must neither divide by zero nor run without noise."""
    assert schedule(1e-3, 0.0, steps)(0) == 1e-3


@pytest.mark.parametrize("schedule", FALLING)
def test_steps_outside_the_run_keep_the_end_points(schedule: Callable[[float, float, int], Schedule]) -> None:
    """A step beyond the plan must not let sigma rise again or become negative."""
    assert schedule(1e-3, 1e-4, 10)(40) == 1e-4
    assert schedule(1e-3, 1e-4, 10)(-3) == 1e-3


def test_constant_never_changes() -> None:
    """The ablation without decay would decay."""
    assert {constant(0.02)(step) for step in (0, 1, 1000)} == {0.02}


def test_warm_up_holds_and_then_starts_from_the_beginning() -> None:
    """A warm-up that skips into the schedule would cut its largest sigmas."""
    schedule = warm_up(cosine(1e-3, 0.0, 5), 3)
    assert [schedule(step) for step in range(3)] == [1e-3] * 3
    assert [schedule(step) for step in range(3, 8)] == [cosine(1e-3, 0.0, 5)(step) for step in range(5)]
