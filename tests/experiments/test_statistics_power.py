"""Power: what textbooks tabulate, and that the questions are each other's inverse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eoh_esopt.experiments.power import MOST, power, repetitions_needed, visible_effect


@pytest.mark.parametrize(
    ("effect", "paired", "alternative", "expected"),
    [
        (0.2, False, "two-sided", 394),
        (0.5, False, "two-sided", 64),
        (0.8, False, "two-sided", 26),
        (0.5, False, "better", 51),
        (0.5, True, "two-sided", 34),
    ],
)
def test_repetitions_are_those_of_the_textbook(effect: float, paired: bool, alternative: str, expected: int) -> None:
    """Else a user plans too few runs; Cohen (1988) and G*Power give these numbers for power 0.8 at 0.05."""
    assert repetitions_needed(effect, paired=paired, alternative=alternative) == expected  # type: ignore[arg-type]


@given(st.floats(0.1, 4), st.booleans(), st.sampled_from(["better", "two-sided"]))
@settings(max_examples=30, deadline=None)
def test_the_least_repetitions_are_enough_and_one_less_is_not(effect: float, paired: bool, alternative: str) -> None:
    """Else the number is not the least that does."""
    found = repetitions_needed(effect, paired=paired, alternative=alternative)  # type: ignore[arg-type]
    assert found is not None
    assert power(effect, found, paired=paired, alternative=alternative) >= 0.8  # type: ignore[arg-type]
    if found > 2:
        assert power(effect, found - 1, paired=paired, alternative=alternative) < 0.8  # type: ignore[arg-type]


@pytest.mark.parametrize("repetitions", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("paired", [True, False])
def test_the_visible_effect_has_the_wanted_power(repetitions: int, paired: bool) -> None:
    """Else a user believes in an effect that so few runs would mostly miss."""
    effect = visible_effect(repetitions, paired=paired)
    assert effect is not None
    assert power(effect, repetitions, paired=paired) == pytest.approx(0.8, abs=1e-6)


def test_power_is_the_share_of_tests_that_find_the_effect() -> None:
    """Else the formula is for another test than the one that is made."""
    rng = np.random.Generator(np.random.Philox(11))
    arm, baseline = rng.normal(1.0, 1, (4_000, 5)), rng.normal(0, 1, (4_000, 5))
    found = np.mean(stats.ttest_ind(arm, baseline, axis=1, alternative="greater").pvalue < 0.05)
    assert found == pytest.approx(power(1.0, 5, paired=False), abs=3 * math.sqrt(0.25 / 4_000))


def test_no_number_of_repetitions_shows_what_is_not_there() -> None:
    """Else a disadvantage, or nothing, is said to need so many runs to be an advantage."""
    assert repetitions_needed(0.0, paired=False) is None
    assert repetitions_needed(-0.5, paired=False) is None
    assert repetitions_needed(-0.5, paired=False, alternative="two-sided") == 64
    assert repetitions_needed(0.001, paired=False) is None
    assert power(0.001, MOST, paired=False) < 0.8
    assert visible_effect(1, paired=False) is None
