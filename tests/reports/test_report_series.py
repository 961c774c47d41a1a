"""What is drawn: nothing of a series is lost or made up on the way to the figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from report_runs import Maker

from eoh_esopt.experiments.find_runs import run_folders
from eoh_esopt.experiments.run_record import read_run
from eoh_esopt.reports.page import style
from eoh_esopt.reports.page.contents import changes
from eoh_esopt.reports.page.data import Arm, group, read_runs
from eoh_esopt.reports.page.figures import Line, Plot, plots
from eoh_esopt.reports.page.series import band, best_so_far, outcomes, spent, steps
from operators.records import Status

VALUES = st.one_of(st.sampled_from([1.0, 2.0]), st.floats(-1e6, 1e6), st.just(np.nan))
SERIES = arrays.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=VALUES)


@given(SERIES)
def test_a_step_curve_is_whole_after_thinning(stacked: NDArray[np.float64]) -> None:
    """Else a curve in the page misses an improvement that the run made."""
    at = changes(stacked)
    last = np.searchsorted(at, np.arange(stacked.shape[1]), side="right") - 1
    assert np.array_equal(stacked[:, np.array(at)[last]], stacked, equal_nan=True)


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), min_size=1, max_size=5))
def test_the_mean_lies_in_its_band_and_ends_with_the_first_run(series: list[list[float]]) -> None:
    """Else a mean goes on over fewer runs than its caption says."""
    found = band([np.array(one) for one in series])
    shortest = min(map(len, series))
    assert np.isnan(found.middle[shortest:]).all()
    inside = slice(0, shortest)
    assert (found.low[inside] <= found.middle[inside] + 1e-6).all()
    assert (found.middle[inside] <= found.high[inside] + 1e-6).all()


def test_the_best_so_far_only_gets_better_and_ends_with_the_best(many_runs: Path) -> None:
    """Else the curve and the table of results disagree."""
    for folder in run_folders([many_runs]):
        run = read_run(folder, finished=False)
        values = best_so_far(run)
        assert len(values) == run.ledger.candidates + 1
        gains = np.diff(values) * (1 if run.scale.maximise else -1)
        assert (gains >= 0).all()
        assert run.best is not None
        assert values[-1] == run.scale.natural(run.best)


def test_a_run_with_nothing_valid_has_no_curve(maker: Maker) -> None:
    """Else a run that found nothing is drawn at zero."""
    folder = maker.run("nothing/one")
    log = folder / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text(lines[0])
    assert np.isnan(best_so_far(read_run(folder, finished=False))).all()


def arm_of(folder: Path) -> Arm:
    return group(read_runs([folder], lambda: None))[0].arms[0]


def test_every_candidate_is_counted_once(one_run: Path) -> None:
    """Else shares of failures are of another whole than the caption says."""
    arm = arm_of(one_run)
    counts = outcomes(arm.runs)
    ledger = arm.runs[0].ledger
    assert sum(sum(one.values()) for one in counts.values()) == ledger.candidates + ledger.start_candidates
    assert "seed" not in counts


def test_all_updates_and_skips_are_steps(one_run: Path) -> None:
    """Else skipped updates are not seen."""
    arm = arm_of(one_run)
    found = steps(arm)
    run = arm.runs[0]
    assert len(found) == len(run.updates) + len(run.skips)
    assert sum(len(one.rewards) for one in found) == sum(len(one.rewards) for one in run.updates)


def test_all_counters_of_the_ledger_are_there(one_run: Path) -> None:
    """Else a counter that a later release adds is not in reports."""
    run = arm_of(one_run).runs[0]
    plain = {name: value for name, value in run.ledger.as_dict().items() if not isinstance(value, dict)}
    found = spent(run)
    assert {name.replace("_", " "): value for name, value in plain.items()}.items() <= found.items()


def test_series_can_be_told_apart_without_their_colours() -> None:
    """Else lines are the same to readers who see no colours, and from the seventh on to everybody."""
    styles = [style.series(index) for index in range(30)]
    assert len({repr(one) for one in styles}) == 30
    assert all(len({repr(one.dash) for one in styles[first : first + 5]}) == 5 for first in range(26))
    assert len({repr(fill) for fill in style.FILLS.values()}) == len(style.FILLS)


def test_kinds_of_outcomes_have_a_place_in_the_bars() -> None:
    """Else a failure of a kind that a later release adds is drawn as if it were another."""
    kinds = {status.value.replace("_", " ") for status in Status if status is not Status.OK}
    assert kinds | {"new", "duplicate"} == set(style.FILLS)


def test_text_in_a_figure_is_text() -> None:
    """Else a model's name with a tag in it is part of the page, or one with dollars is set as a formula."""
    line = Line("<script>$x$", np.array([0.0, 1.0]), np.array([1.0, 2.0]), 0)
    figure = plots("f", "", "x", [Plot("a & b", [line])], height=2)
    assert "<script" not in figure.inline
    assert "&lt;script&gt;$x$" in figure.inline
