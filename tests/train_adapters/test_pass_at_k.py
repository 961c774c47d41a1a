"""Mean@k and Pass@k: their estimates, what is left out of them, and how they are shown."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from training_cases import CountAdapter, drawn

from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import Ending, Episode, success_threshold
from train_adapters.agent_evaluation import played
from train_adapters.evaluation import Evaluation, evaluated
from train_adapters.pass_at_k import LONGEST, as_record, best_of, curve, pass_at_k
from train_adapters.pass_at_k_report import check_plot, print_curve, write_plot

REWARDS = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=1, max_size=40)


def evaluation(rewards: Sequence[Sequence[float | None]], success: float = 1.0) -> Evaluation:
    """Of tasks whose episodes had these rewards; None for one that does not count."""
    repeats = [
        [
            Episode(f"task-{i}", repeat, Ending.INFRA_FAILED if one is None else Ending.SCORED, one)
            for i, one in enumerate(at)
        ]
        for repeat, at in enumerate(zip(*rewards, strict=True))
    ]
    return evaluated("test", repeats, seed=3, success=success)


def printed(found: Evaluation, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    print_curve(console, found, curve(found, seed=1))
    return console.export_text()


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_published_formula(case: tuple[int, int, int]) -> None:
    """Else figures cannot be compared with anybody else's."""
    n, c, k = case
    miss = 1.0
    for i in range(k):  # no success among k picks, one after the other
        miss *= max(n - c - i, 0) / (n - i)
    assert pass_at_k(n, c, k) == pytest.approx(1 - miss, abs=1e-12)


@given(REWARDS)
def test_more_tries_are_never_worth_less(rewards: list[float]) -> None:
    """Else a curve falls, which no best of k can."""
    points = [best_of(rewards, k) for k in range(1, len(rewards) + 1)]
    assert all(later >= sooner - 1e-9 for sooner, later in itertools.pairwise(points))
    assert points[0] == pytest.approx(float(np.mean(rewards)), abs=1e-9)
    assert points[-1] == pytest.approx(max(rewards), abs=1e-9)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=7).flatmap(lambda v: st.tuples(st.just(v), st.integers(1, len(v))))
)
def test_the_best_of_k_is_the_mean_over_all_picks(case: tuple[list[float], int]) -> None:
    """Else it is an estimate of something else."""
    rewards, k = case
    picks = [max(pick) for pick in itertools.combinations(rewards, k)]
    assert best_of(rewards, k) == pytest.approx(float(np.mean(picks)), abs=1e-9)


@pytest.mark.parametrize(("chance", "n", "k"), [(0.1, 8, 4), (0.5, 5, 2), (0.03, 32, 16)])
def test_pass_at_k_is_unbiased(chance: float, n: int, k: int) -> None:
    """Else small tests of a model flatter it, as 1 - (1 - c / n) ** k does the other way."""
    rng = np.random.default_rng(20261130)
    successes = rng.binomial(n, chance, size=20_000)
    estimates = np.array([pass_at_k(n, c, k) for c in range(n + 1)])[successes]
    truth = 1 - (1 - chance) ** k
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / np.sqrt(len(estimates))


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_episodes_is_refused(k: int) -> None:
    """Else a number is made up that no episode stands behind."""
    with pytest.raises(ValueError, match="between 1 and the 3 values"):
        best_of([0.0, 1.0, 1.0], k)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=4, max_size=4), min_size=2, max_size=6))
def test_a_curve_rises_and_lies_in_its_interval(rewards: list[list[float]]) -> None:
    """Else the table of a whole split says what its tasks do not."""
    points = curve(evaluation(rewards, success=0.4), seed=1)
    assert [point.k for point in points] == [1, 2, 3, 4]
    assert points[0].pass_at.value == pytest.approx(points[0].mean_at.value)
    assert points[0].best_reward.value == pytest.approx(points[0].mean_reward.value)
    for sooner, later in itertools.pairwise(points):
        assert later.pass_at.value >= sooner.pass_at.value - 1e-12
        assert later.mean_at == sooner.mean_at
    for point in points:
        estimate = point.pass_at
        if estimate.low is not None and estimate.high is not None:
            assert estimate.low <= estimate.value + 1e-9
            assert estimate.high >= estimate.value - 1e-9


def test_failures_that_are_not_the_agents_are_left_out_and_counted() -> None:
    """Else an outage lowers the score of a model, or vanishes."""
    found = evaluation([[1.0, None, 0.0], [0.0, 1.0, 1.0], [None, None, None]])
    points = curve(found, seed=1)
    assert [point.tasks for point in points] == [2, 2, 1]
    assert points[0].mean_at.value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert points[2].pass_at.value == 1.0
    tasks = as_record(found, points)["tasks"]
    assert [one["left_out"] for one in tasks.values()] == [1, 0, 3]
    assert tasks["task-2"]["mean_reward"] is None
    assert tasks["task-2"]["pass_at"] == []
    assert "4 episodes that failed by no fault of the agent's" in " ".join(printed(found).split())


def test_an_adapter_states_what_a_success_is() -> None:
    """Else a reward of 0.9 of a task with rewards in between is a failure."""
    adapter = CountAdapter()
    assert success_threshold(adapter) == 1.0
    adapter.success = 0.5  # type: ignore[attr-defined]
    assert played(ScriptedModel(drawn), adapter, adapter.tasks("val"), "val", 2, seed=7).success == 0.5
    points = curve(evaluation([[0.6, 0.4], [0.4, 0.4]], success=0.5), seed=1)
    assert (points[0].pass_at.value, points[1].pass_at.value) == (0.25, 0.5)


def test_the_table_has_powers_of_two_and_the_last_k() -> None:
    """Else a reader cannot look up the k that others report."""
    found = evaluation([[1.0] * 5 + [0.0] * 35, [0.0] * 40])
    rows = [line.split()[0] for line in printed(found).splitlines() if line.strip()[:1].isdigit()]
    assert rows[:6] == ["1", "2", "4", "8", "16", str(LONGEST)]
    assert "reward of at least 1" in printed(found)


def test_rewards_in_between_have_columns_of_their_own() -> None:
    """Else the best of k of a continuous reward is nowhere."""
    assert "best of k" not in printed(evaluation([[1.0, 0.0], [0.0, 0.0]]))
    text = printed(evaluation([[0.7, 0.2], [0.1, 0.0]], success=0.5), width=80)
    assert "best of k" in text
    assert "…" not in text


def test_nothing_that_counts_prints_no_table() -> None:
    """Else an outage ends in a traceback."""
    found = evaluation([[None, None]])
    assert curve(found, seed=1) == []
    assert printed(found) == ""


def test_the_record_is_json_and_has_every_task() -> None:
    """Else nothing can be computed from an evaluation afterwards."""
    found = evaluation([[1.0, 0.0], [0.0, 0.0]])
    record = json.loads(json.dumps(as_record(found, curve(found, seed=1))))
    assert record["outcomes"] == {"task-0": [1.0, 0.0], "task-1": [0.0, 0.0]}
    assert record["tasks"]["task-0"]["pass_at"] == [0.5, 1.0]
    assert record["curve"][1]["pass_at"]["value"] == 0.5


@pytest.mark.parametrize(("name", "begins"), [("curve.svg", b"<?xml"), ("curve.png", b"\x89PNG")])
def test_the_curve_is_drawn(tmp_path: Path, name: str, begins: bytes) -> None:
    """Else --plot writes nothing, or no picture."""
    found = evaluation([[0.7, 0.2], [0.1, 0.0]], success=0.5)
    check_plot(tmp_path / name)
    write_plot(tmp_path / name, found, curve(found, seed=1))
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_figure_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    """Else an hour of episodes is played for nothing."""
    with pytest.raises(UserError, match=r"end in \.svg or \.png"):
        check_plot(tmp_path / "curve.pdf")
    with pytest.raises(UserError, match="no folder"):
        check_plot(tmp_path / "nowhere" / "curve.svg")
    check_plot(None)
    with pytest.raises(UserError, match="No episode counts"):
        write_plot(tmp_path / "curve.svg", evaluation([[None]]), [])
