"""Which runs make an arm and a cell, and what is refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from run_folders import write_arm, write_run

from eoh_esopt.experiments.comparison import compare_runs
from eoh_esopt.experiments.find_runs import find_runs
from eoh_esopt.experiments.grouping import group_runs
from eoh_esopt.experiments.run_record import RunRecord
from operators.errors import UserError

VALUES = {1: 6.5, 2: 6.4, 3: 6.6}


def names(runs: list[RunRecord], budget_of: str = "candidates", force: bool = False) -> list[list[str]]:
    """The arms of each cell."""
    return [sorted(arm.name for arm in cell.arms) for cell in group_runs(runs, budget_of, force=force)]


def test_arms_are_named_by_what_tells_them_apart(tmp_path: Path) -> None:
    """Else a reader cannot see which column is the control."""
    runs = write_arm(tmp_path / "a", VALUES)
    runs += write_arm(tmp_path / "b", VALUES, method="esopt-eoh")
    runs += write_arm(tmp_path / "c", VALUES, method="esopt-eoh", shuffle_rewards=True)
    runs += write_arm(tmp_path / "d", VALUES, method="esopt-eoh", sigma=0.06)
    usual = f"esopt-eoh sigma {runs[3].config.sigma:g}"
    assert names(runs) == [["eoh", usual, f"{usual} shuffled", "esopt-eoh sigma 0.06"]]
    assert names(runs[:9]) == [["eoh", "esopt-eoh", "esopt-eoh shuffled"]]


def test_settings_of_learning_and_of_the_machine_make_no_arm(tmp_path: Path) -> None:
    """Else one plain EoH arm falls into two, because a sweep passed it another sigma or batch size."""
    runs = write_arm(tmp_path / "a", {1: 6.5}, sigma=0.1, max_batch=8)
    runs += write_arm(tmp_path / "b", {2: 6.5}, sigma=0.2, max_batch=64, scope="norms")
    assert names(runs) == [["eoh"]]


def test_tasks_and_budgets_are_rows_of_their_own(tmp_path: Path) -> None:
    """Else objectives of different problems, or of longer searches, are averaged together."""
    runs = []
    for problem in ("tsp_construct", "kp_construct"):
        for budget in (40, 80):
            for method in ("eoh", "esopt-eoh"):
                folder = tmp_path / problem / str(budget) / method
                runs += write_arm(folder, VALUES, method=method, budget=budget, problem=problem)
    cells = group_runs(runs, "candidates", force=False)
    assert [(cell.problem, cell.arms[0].spent("candidates")) for cell in cells] == [
        ("kp_construct", 40),
        ("kp_construct", 80),
        ("tsp_construct", 40),
        ("tsp_construct", 80),
    ]
    assert names(runs) == [["eoh", "esopt-eoh"]] * 4


def test_a_longer_search_is_not_held_against_a_shorter_one(tmp_path: Path) -> None:
    """Else half the budget passes for a worse method, as it did in published tables."""
    runs = write_arm(tmp_path / "a", VALUES, budget=1010) + write_arm(
        tmp_path / "b", VALUES, method="esopt-eoh", budget=2030
    )
    with pytest.raises(UserError, match=r"eoh .*1,010, esopt-eoh .*2,030 candidates.*--force"):
        compare_runs(runs)
    [cell] = compare_runs(runs, force=True).tables[0].cells
    assert cell.unequal
    assert [arm.name for arm in cell.arms] == ["eoh", "esopt-eoh"]
    assert any(note.startswith("UNEQUAL") and "eoh 1,010, esopt-eoh 2,030" in note for note in cell.notes)


@pytest.mark.parametrize(("calls", "refused"), [(1_009, False), (1_011, True)])
def test_one_per_cent_of_the_named_budget_is_the_limit(tmp_path: Path, calls: int, refused: bool) -> None:
    """Else budgets drift apart, or a rounding of batches stops every comparison."""
    runs = write_arm(tmp_path / "a", VALUES, spent={"model_calls": 1_000})
    runs += write_arm(tmp_path / "b", VALUES, method="esopt-eoh", spent={"model_calls": calls})
    assert names(runs) == [["eoh", "esopt-eoh"]]
    if refused:
        with pytest.raises(UserError, match=r"eoh 1,000, esopt-eoh 1,011 model calls"):
            group_runs(runs, "model_calls", force=False)
    [cell] = group_runs(runs, "model_calls", force=True)
    assert cell.unequal is refused


def test_what_was_not_held_equal_is_told(tmp_path: Path) -> None:
    """Else an arm that read ten times the tokens looks as cheap as the other."""
    runs = write_arm(tmp_path / "a", VALUES)
    runs += (
        write_arm(tmp_path / "b", VALUES, method="esopt-eoh", spent={"prompt_tokens": 90_000}, temperature=None)
        if 0
        else []
    )
    runs += write_arm(tmp_path / "b", VALUES, method="esopt-eoh", spent={"prompt_tokens": 90_000}, timeout=5.0)
    [cell] = group_runs(runs, "candidates", force=False)
    assert any(note.startswith("Not held equal") and "tokens" in note for note in cell.notes)
    assert any("timeout too: eoh 20.0, esopt-eoh 5.0" in note for note in cell.notes)


def test_equal_tokens_make_a_row_though_candidates_differ(tmp_path: Path) -> None:
    """Else --budget-of tokens can never compare what was planned by tokens."""
    tokens = {"prompt_tokens": 10_000, "new_tokens": 2_000}
    runs = write_arm(tmp_path / "a", VALUES, budget=40, spent=tokens)
    runs += write_arm(tmp_path / "b", VALUES, budget=60, method="esopt-eoh", spent=tokens)
    assert names(runs, "tokens") == [["eoh", "esopt-eoh"]]
    with pytest.raises(UserError, match="differ by more than 1%"):
        names(runs)


def test_a_row_without_a_partner_is_shown(tmp_path: Path) -> None:
    """Else runs of a sweep that is under way vanish from the table."""
    runs = write_arm(tmp_path / "a", VALUES) + write_arm(tmp_path / "b", VALUES, method="esopt-eoh")
    runs += write_arm(tmp_path / "c", VALUES, budget=80)
    lone = compare_runs(runs).tables[0].cells[1]
    assert ([arm.name for arm in lone.arms], lone.contrasts) == (["eoh"], ())
    assert any("Only one arm here, eoh" in note for note in lone.notes)


def refused(runs: list[RunRecord | None], match: str) -> None:
    with pytest.raises(UserError, match=match):
        compare_runs([run for run in runs if run is not None])


def test_runs_that_differ_in_more_than_their_arm_are_refused_by_name(tmp_path: Path) -> None:
    """Else a difference of models, data or starts is taken for one of methods."""
    first = write_run(tmp_path / "first", seed=1, best=6.5)
    other = write_run(tmp_path / "model", seed=2, best=6.5, checksum="b" * 64)
    refused([first, other], r"first and .*model began with different weights.*aaaaaaaaaaaa.*bbbbbbbbbbbb")
    named = {"model": {"model": "another"}}
    renamed = write_run(tmp_path / "named", seed=2, best=6.5, checksum="c" * 64, scope="norms", facts=named)
    refused([first, renamed], r"different models: scripted and another")
    data = write_run(tmp_path / "data", seed=2, best=6.5, facts={"references": {"optimum": 5.9}})
    refused([first, data], r"first and .*data were scored on different instances of tsp_construct")
    seeds = write_run(tmp_path / "seeds", seed=2, best=6.5, seeds=(7.1,))
    refused([first, seeds], r"seeds were scored on different instances")
    start = write_run(tmp_path / "start", seed=2, best=6.5, given=(6.8,), init_from="population.json")
    refused([first, start], r"first and .*start differ in init_from: .*own programs and population.json")


def test_the_same_model_in_another_form_is_told(tmp_path: Path) -> None:
    """Else a plain arm in another scope is refused, or a reader thinks that the weights were compared."""
    runs = write_arm(tmp_path / "a", VALUES)
    runs += write_arm(tmp_path / "b", VALUES, method="esopt-eoh", scope="norms", checksum="b" * 64)
    [note] = compare_runs(runs).notes
    assert "same by name (scripted)" in note


def test_repetitions_must_be_different_runs(tmp_path: Path) -> None:
    """Else one run counts twice and the spread is too small."""
    first = write_run(tmp_path / "a", seed=1, best=6.5)
    refused(
        [first, write_run(tmp_path / "b", seed=1, best=6.4)], r"a and .*b are runs of the same arm with the same seed 1"
    )
    refused([first, first], r"a is given twice")
    refused([], "no runs")


def test_runs_without_a_value_are_refused_by_name(tmp_path: Path) -> None:
    """Else failed repetitions are dropped in silence and an arm looks better than it is."""
    refused([write_run(tmp_path / "a", seed=1, best=None, seeds=())], r"a has no valid candidate")
    refused([write_run(tmp_path / "b", seed=1, best=math.nan)], r"b is nan")


def test_unfinished_runs_are_all_named(tmp_path: Path) -> None:
    """Else the user mends one run at a time."""
    write_arm(tmp_path, VALUES)
    for seed in (4, 5):
        write_run(tmp_path / f"seed-{seed}", seed=seed, best=6.0, finished=False)
    with pytest.raises(UserError, match=r"seed-4 is not finished.*seed-5 is not finished"):
        find_runs([tmp_path])
    log = tmp_path / "seed-3" / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-20])  # as a full disk leaves it
    with pytest.raises(UserError, match="seed-3 is not finished"):
        find_runs([tmp_path / "seed-1", tmp_path / "seed-3"])


def test_what_is_missing_is_left_out_only_by_name(tmp_path: Path) -> None:
    """Else a sweep that lost cells is compared as if it were whole; or cannot be looked at while it runs."""
    write_arm(tmp_path, VALUES)
    write_run(tmp_path / "seed-4", seed=4, best=6.0, finished=False)
    cells = [{"cell": "seed-1", "state": "finished"}, {"cell": "seed-9", "state": "failed", "why": "no memory"}]
    (tmp_path / "sweep.json").write_text(json.dumps({"cells": cells}))
    with pytest.raises(UserError, match=r"seed-4 is not finished.*have no run: seed-9 \(no memory\).*--partial"):
        find_runs([tmp_path])
    found = find_runs([tmp_path], partial=True)
    assert len(found.runs) == 3
    notes = compare_runs(found.runs, missing=found.missing).notes
    assert ["seed-4" in notes[0], "seed-9" in notes[1], len(notes)] == [True, True, 2]
    (tmp_path / "sweep.json").write_text('{"cells": [{}]}')
    with pytest.raises(UserError, match=r"sweep\.json is damaged"):
        find_runs([tmp_path])


def test_other_engines_make_other_arms(tmp_path: Path) -> None:
    """Else a search of another engine is averaged with ours under one name."""
    runs = write_arm(tmp_path / "a", VALUES)
    host = {"name": "EoH 0.2", "schedule": "paper", "evaluator": "sandbox"}
    runs += write_arm(tmp_path / "b", VALUES, facts={"host": host})
    assert names(runs) == [["eoh", "eoh engine EoH 0.2 schedule paper evaluator sandbox"]]


def test_runs_are_found_in_folders_of_folders(tmp_path: Path) -> None:
    """Else every run of a sweep has to be typed."""
    write_arm(tmp_path / "sweep" / "tsp" / "eoh", VALUES)
    found = find_runs([tmp_path / "sweep", *[run.folder for run in write_arm(tmp_path / "more", {9: 6.0})]])
    assert [run.config.seed for run in found.runs] == [1, 2, 3, 9]
    assert found.missing == ()
    assert len(find_runs([tmp_path, tmp_path / "sweep"]).runs) == 4  # a folder that is named twice counts once
    (tmp_path / "empty").mkdir()
    for folder, match in (("empty", "empty holds no run"), ("gone", "gone is not there")):
        with pytest.raises(UserError, match=match):
            find_runs([tmp_path / folder])


def test_an_unknown_budget_is_refused(tmp_path: Path) -> None:
    """Else a misspelt counter holds nothing equal."""
    runs = write_arm(tmp_path, VALUES)
    with pytest.raises(UserError, match=r"Unknown budget 'money'.*candidates, model_calls, evaluations, tokens"):
        compare_runs(runs, budget_of="money")
