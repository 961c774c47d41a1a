"""Intervals by resampling: the same numbers for any number of workers, and those that scipy's bootstrap gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eoh_esopt.experiments import resampling
from eoh_esopt.experiments.resampling import Resampling, drawn_flips, drawn_partitions
from eoh_esopt.experiments.resampling import paired_interval as paired
from eoh_esopt.experiments.resampling import unpaired_interval as unpaired

ARM = np.array([5.1, 4.2, 6.3, 5.5, 4.9, 7.4])
BASELINE = np.array([4.0, 4.1, 5.0, 3.2, 4.8, 4.4])


def test_two_workers_draw_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the same command says another interval on another machine."""
    monkeypatch.setattr(resampling, "BLOCK", 100)
    one, two = Resampling(450, seed=3, workers=1), Resampling(450, seed=3, workers=2)
    assert paired(ARM - BASELINE, 0.95, one) == paired(ARM - BASELINE, 0.95, two)
    assert unpaired(ARM, BASELINE, 0.95, one) == unpaired(ARM, BASELINE, 0.95, two)
    assert drawn_flips(ARM - BASELINE, one).tolist() == drawn_flips(ARM - BASELINE, two).tolist()
    assert drawn_partitions(ARM, BASELINE, one).tolist() == drawn_partitions(ARM, BASELINE, two).tolist()


def test_blocks_and_seeds_have_streams_of_their_own() -> None:
    """Else resamples repeat themselves and intervals are too sure."""
    first = drawn_partitions(ARM, BASELINE, Resampling(resampling.BLOCK + 5, seed=1))
    assert len(first) == resampling.BLOCK + 5
    assert first[:5].tolist() != first[resampling.BLOCK :].tolist()
    assert first[:5].tolist() != drawn_partitions(ARM, BASELINE, Resampling(5, seed=2)).tolist()


def test_intervals_are_those_of_scipy() -> None:
    """Else "BCa" is not what others mean by it."""
    draws = Resampling(40_000, seed=5)
    own, other = paired(ARM - BASELINE, 0.95, draws), stats.bootstrap((ARM - BASELINE,), np.mean, n_resamples=40_000)
    assert own.kind == "BCa"
    assert (own.low, own.high) == pytest.approx(tuple(other.confidence_interval), abs=0.05)
    own = unpaired(ARM, BASELINE, 0.9, draws)
    other = stats.bootstrap(
        (ARM, BASELINE),
        lambda first, second, axis: first.mean(axis=axis) - second.mean(axis=axis),
        n_resamples=40_000,
        confidence_level=0.9,
    )
    assert (own.low, own.high) == pytest.approx(tuple(other.confidence_interval), abs=0.05)


def test_no_spread_gives_an_interval_without_width() -> None:
    """Else identical runs end in NaN."""
    same = paired(np.array([0.5, 0.5, 0.5]), 0.95, Resampling(200))
    assert (same.low, same.high, same.kind) == (0.5, 0.5, "percentile")


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8))
@settings(max_examples=40, deadline=None)
def test_an_interval_lies_within_its_values(values: list[float]) -> None:
    """Else an interval names means that no resample has."""
    found = paired(np.array(values), 0.95, Resampling(200))
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_few_runs_get_too_narrow_an_interval_and_we_say_how_narrow() -> None:
    """Else the table's caution, 80 to 90 % at 5 repetitions, is wrong, and readers trust intervals too much."""
    rng = np.random.Generator(np.random.Philox(19))
    covered = []
    for seed in range(300):
        found = paired(rng.normal(0, 1, 5), 0.95, Resampling(300, seed=seed))
        covered.append(found.low <= 0 <= found.high)
    assert 0.76 < np.mean(covered) < 0.92


def test_a_higher_confidence_gives_a_wider_interval() -> None:
    """Else --confidence does nothing."""
    narrow, wide = (unpaired(ARM, BASELINE, level, Resampling(2_000)) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
