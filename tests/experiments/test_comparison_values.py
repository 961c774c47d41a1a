"""What a comparison says of its arms: values, differences, tests, wins, and when it says that there is none."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_folders import write_arm, write_run

from eoh_esopt.experiments.comparison import compare_runs
from eoh_esopt.experiments.comparison_records import Cell, Contrast, TestResult
from eoh_esopt.experiments.comparison_tables import as_csv, as_json, as_markdown
from eoh_esopt.experiments.contrasts import Method, Sample, contrast
from eoh_esopt.experiments.held_out import HeldOut
from eoh_esopt.experiments.resampling import Resampling
from eoh_esopt.experiments.run_record import RunRecord
from operators.errors import UserError

EOH = {1: 6.6, 2: 6.5, 3: 6.7, 4: 6.4, 5: 6.8}
BETTER = {1: 6.5, 2: 6.3, 3: 6.65, 4: 6.2, 5: 6.4}
KP = {"measure": "value", "maximise": True, "references": {"optimum": 40.0}}
QUICK = Method(resampling=Resampling(200))


def two_arms(root: Path, first: dict[int, float] = EOH, second: dict[int, float] = BETTER) -> list[RunRecord]:
    return write_arm(root / "a", first) + write_arm(root / "b", second, method="esopt-eoh")


def only(runs: list[RunRecord], **settings: object) -> tuple[Cell, Contrast]:
    """The one cell of the training table and its one contrast."""
    [cell] = compare_runs(runs, resamples=200, **settings).tables[0].cells  # type: ignore[arg-type]
    [found] = cell.contrasts
    return cell, found


def test_of(found: Contrast, name: str) -> TestResult:
    [test] = [one for one in found.tests if one.name == name]
    return test


test_of.__test__ = False  # type: ignore[attr-defined]


def test_an_arm_is_described_by_its_runs(tmp_path: Path) -> None:
    """Else the table says something else than the logs."""
    cell, _ = only(two_arms(tmp_path))
    eoh = cell.arms[0]
    assert (eoh.name, [run.seed for run in eoh.runs]) == ("eoh", [1, 2, 3, 4, 5])
    assert (eoh.mean, eoh.sd) == (pytest.approx(6.6), pytest.approx(math.sqrt(0.025)))
    assert (eoh.best, eoh.median) == (6.4, 6.6)
    assert eoh.gap == pytest.approx(6.6 / 5.7 - 1)
    assert (eoh.spent["candidates"], eoh.spent["tokens"]) == (40, 4_800)


def test_same_seeds_are_paired(tmp_path: Path) -> None:
    """Else the luck of a start that both arms had drowns the difference."""
    _, found = only(two_arms(tmp_path))
    assert (found.paired, found.words, found.effect_name) == (True, "better", "Cohen's d_z")
    assert found.difference == pytest.approx(-0.19)
    assert found.advantage == pytest.approx(0.19)
    assert found.interval is not None
    assert found.interval[0] < -0.19 < found.interval[1] < 0
    assert found.bootstrap == "BCa of the paired differences"
    assert (
        test_of(found, "permutation").p == test_of(found, "Wilcoxon").p == 1 / 32 == test_of(found, "Wilcoxon").smallest
    )
    assert (found.wins.wins, found.wins.ties, found.wins.losses) == (5, 0, 0)
    assert (found.wins.mean_win, found.wins.mean_loss) == (pytest.approx(0.19), None)


def test_other_seeds_are_not_paired_and_say_so(tmp_path: Path) -> None:
    """Else runs that have nothing in common are subtracted from each other."""
    _, found = only(two_arms(tmp_path, EOH, {1: 6.5, 2: 6.3, 6: 6.65}))
    assert (found.paired, found.effect_name) == (False, "Hedges' g")
    assert found.bootstrap == "BCa of the two groups"
    assert [test.name for test in found.tests] == ["t-test", "Welch", "Mann-Whitney", "permutation"]
    assert test_of(found, "permutation").smallest == pytest.approx(1 / 56)
    assert any("esopt-eoh has 1, 2, 6; eoh has 1, 2, 3, 4, 5" in note for note in found.notes)
    assert found.wins.of == "all pairs of runs"
    assert found.wins.wins + found.wins.ties + found.wins.losses == 15


def test_where_higher_is_better_a_higher_mean_is_better(tmp_path: Path) -> None:
    """Else the best knapsack arm is called the worst."""
    runs = write_arm(tmp_path / "a", {1: -30.0, 2: -31.0, 3: -32.0}, problem="kp_construct", facts=KP, seeds=(-20.0,))
    runs += write_arm(
        tmp_path / "b",
        {1: -33.0, 2: -35.0, 3: -34.0},
        problem="kp_construct",
        facts=KP,
        seeds=(-20.0,),
        method="esopt-eoh",
    )
    cell, found = only(runs)
    assert (cell.arms[0].mean, cell.arms[0].best, cell.arms[0].gap) == (31.0, 32.0, 0.225)
    assert (found.difference, found.advantage, found.words) == (3.0, 3.0, "better")
    assert found.interval is not None
    assert 0 < found.interval[0] <= 3 <= found.interval[1]


def test_one_sided_tests_ask_whether_the_arm_is_better(tmp_path: Path) -> None:
    """Else a control that does harm looks significant."""
    runs = two_arms(tmp_path, BETTER, EOH)
    _, worse = only(runs)
    assert worse.words == "worse"
    assert worse.repetitions_needed is None
    assert all(test.p is not None and test.p > 0.5 for test in worse.tests)
    _, either = only(runs, alternative="two-sided")
    assert test_of(either, "permutation").p == 2 / 32
    assert either.repetitions_needed is not None


def test_three_repetitions_are_told_that_they_can_show_nothing(tmp_path: Path) -> None:
    """Else "better in all three" is read as evidence."""
    three = {seed: EOH[seed] for seed in (1, 2, 3)}
    other = {seed: EOH[seed] - 1 for seed in (4, 5)} | {6: 5.0}
    _, found = only(two_arms(tmp_path / "unpaired", three, other))
    assert test_of(found, "permutation").p == test_of(found, "permutation").smallest == 0.05
    assert any("3 repetitions cannot show a difference" in note and "0.05" in note for note in found.notes)
    _, found = only(two_arms(tmp_path / "paired", three, {seed: value - 1 for seed, value in three.items()}))
    assert test_of(found, "permutation").smallest == 0.125


def test_one_repetition_has_values_and_no_test(tmp_path: Path) -> None:
    """Else a single lucky run gets a p value, or the whole table fails."""
    cell, found = only(two_arms(tmp_path, {1: 6.6}, {1: 6.5}))
    assert (cell.arms[0].mean, cell.arms[0].sd) == (6.6, None)
    assert (found.words, found.effect, found.interval, found.visible_effect) == ("better", None, None, None)
    assert all(test.p is None and "at least 2" in test.reason for test in found.tests)
    assert any("one repetition allows no test" in note for note in found.notes)


def test_identical_values_say_why_there_is_no_p(tmp_path: Path) -> None:
    """Else arms that all end at the seed heuristic fill the table with NaN."""
    same = dict.fromkeys(EOH, 7.0)
    cell, found = only(two_arms(tmp_path, same, same))
    assert (found.words, found.difference, found.effect) == ("equal", 0.0, None)
    assert {test.reason for test in found.tests} == {
        "neither group has any spread",
        "all values are equal",
        "all differences are zero",
    }
    assert (found.wins.wins, found.wins.ties, found.wins.losses) == (0, 5, 0)
    assert any("eoh 5 of 5, esopt-eoh 5 of 5" in note for note in cell.notes)


def test_rounding_is_a_tie(tmp_path: Path) -> None:
    """Else the same heuristic, summed on another processor, wins."""
    _, found = only(two_arms(tmp_path, EOH, {seed: value * (1 + 1e-14) for seed, value in EOH.items()}))
    assert (found.words, found.wins.ties) == ("equal", 5)
    assert test_of(found, "Wilcoxon").reason == "all differences are zero"


def test_a_control_is_corrected_together_with_the_arm(tmp_path: Path) -> None:
    """Else twenty comparisons find one by chance, and it is called significant."""
    runs = two_arms(tmp_path) + write_arm(tmp_path / "c", EOH, method="esopt-eoh", shuffle_rewards=True)
    [cell] = compare_runs(runs, resamples=200).tables[0].cells
    assert [one.arm for one in cell.contrasts] == ["esopt-eoh", "esopt-eoh shuffled"]
    arm, control = cell.contrasts
    assert test_of(arm, "permutation").holm == 2 / 32  # the control has no p, and counts all the same
    assert test_of(arm, "t-test").holm == pytest.approx(2 * (test_of(arm, "t-test").p or 0))
    assert test_of(control, "permutation").holm is None


def test_the_whole_table_counts_rows_with_their_sizes(tmp_path: Path) -> None:
    """Else a gain of 0.1 % and a loss of 20 % are one win and one loss."""
    runs = two_arms(tmp_path / "tsp")
    for method, change in (("eoh", 0.0), ("esopt-eoh", 1.0)):
        values = {seed: value + change - 40 for seed, value in EOH.items()}
        runs += write_arm(
            tmp_path / "kp" / method, values, method=method, problem="kp_construct", facts=KP, seeds=(-20.0,)
        )
    table = compare_runs(runs, resamples=200).tables[0]
    record = table.records["esopt-eoh"]
    assert (record.wins, record.ties, record.losses) == (1, 0, 1)
    assert record.mean_win == pytest.approx(0.19 / 6.6)
    assert record.mean_loss == pytest.approx(-1 / 33.4)


@given(
    st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=2, max_size=6),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_order_of_the_runs_says_nothing(pairs: list[tuple[float, float]], random: object, maximise: bool) -> None:
    """Else pairs are torn apart by the order of folders."""
    arm, baseline = ({seed: pair[side] for seed, pair in enumerate(pairs)} for side in (0, 1))
    shuffled = list(arm.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = contrast(Sample("arm", arm), Sample("baseline", baseline), maximise, QUICK)
    second = contrast(Sample("arm", dict(shuffled)), Sample("baseline", baseline), maximise, QUICK)
    assert first == second
    assert first.words == contrast(Sample("a", baseline), Sample("b", arm), not maximise, QUICK).words


def test_the_baseline_can_be_chosen(tmp_path: Path) -> None:
    """Else nobody can hold learning against its own control."""
    runs = two_arms(tmp_path) + write_arm(tmp_path / "c", EOH, method="esopt-eoh", shuffle_rewards=True)
    found = compare_runs(runs, baseline="esopt-eoh shuffled", resamples=200).tables[0].cells[0]
    assert [arm.name for arm in found.arms] == ["esopt-eoh shuffled", "eoh", "esopt-eoh"]
    assert {one.baseline for one in found.contrasts} == {"esopt-eoh shuffled"}
    with pytest.raises(UserError, match=r"no arm 'gpt'.*Arms: eoh, esopt-eoh, esopt-eoh shuffled"):
        compare_runs(runs, baseline="gpt")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"confidence": 95}, "confidence must be above 0 and below 1, not 95"),
        ({"power": 1.0}, "power must be above 0 and below 1"),
        ({"resamples": 5}, "resamples must be at least 100, not 5"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"alternative": "worse"}, "Unknown alternative 'worse'"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, wrong: dict[str, object], match: str) -> None:
    """Else a mistake ends in a trace, or in an interval of 9500 %."""
    with pytest.raises(UserError, match=match):
        compare_runs(two_arms(tmp_path), **wrong)  # type: ignore[arg-type]


def test_held_out_values_are_a_table_of_their_own(tmp_path: Path) -> None:
    """Else values that chose the heuristic and values that test it are mixed."""
    runs = two_arms(tmp_path)
    values = {run.folder: run.best + 0.1 for run in runs if run.best is not None}
    held = HeldOut("tsp_construct", "test50", "tour length", False, "optimum", 5.8, values, {})
    training, found = compare_runs(runs, held_out=[held], resamples=200).tables
    assert (training.objective, found.objective) == ("training", "test50")
    assert found.cells[0].arms[0].mean == pytest.approx(6.7)
    assert found.cells[0].ceiling_value == 5.8
    assert found.cells[0].contrasts[0].difference == pytest.approx(-0.19)


def test_a_heuristic_that_fails_on_held_out_instances_is_told(tmp_path: Path) -> None:
    """Else an arm is averaged over the runs that happened to work."""
    runs = two_arms(tmp_path)
    values = {run.folder: run.best for run in runs[:-1] if run.best is not None}
    held = HeldOut("tsp_construct", "test50", "tour length", False, None, None, values, {runs[-1].folder: "it fails"})
    cell = compare_runs(runs, held_out=[held], resamples=200).tables[1].cells[0]
    assert (cell.arms[1].mean, cell.contrasts) == (None, ())
    assert "esopt-eoh has runs without a value: no test." in cell.notes
    assert f"{runs[-1].folder}: it fails." in cell.notes


def test_every_form_says_the_same(tmp_path: Path) -> None:
    """Else a table in a paper and the file beside it differ."""
    runs = two_arms(tmp_path)
    comparison = compare_runs(runs, resamples=200)
    assert json.loads(as_json(comparison)) == json.loads(json.dumps(asdict(comparison)))
    header, *rows = [line.split(",") for line in as_csv(comparison).splitlines()]
    by_arm = {row[header.index("arm")]: dict(zip(header, row, strict=True)) for row in rows}
    assert float(by_arm["esopt-eoh"]["p_permutation"]) == 1 / 32
    assert float(by_arm["eoh"]["mean"]) == pytest.approx(6.6)
    assert by_arm["eoh"]["p_permutation"] == ""
    text = as_markdown(comparison)
    assert "| p, permutation | 0.0312, Holm 0.0312 (exact) |" in text
    assert "| difference of the means | -0.1900 (better) |" in text
    assert "| eoh | 5 | 6.6000 |" in text


def test_runs_that_found_nothing_are_counted(tmp_path: Path) -> None:
    """Else a seed heuristic passes for what the search found."""
    runs = write_arm(tmp_path / "a", {1: 7.0, 2: 6.9})
    runs += [one for one in [write_run(tmp_path / "b", seed=3, best=None)] if one is not None]
    [cell] = compare_runs(runs).tables[0].cells
    assert [run.from_start for run in cell.arms[0].runs] == [True, False, True]
    assert "Runs that found nothing better than what they began with: eoh 2 of 3." in cell.notes
