"""What a run counts: each thing by itself, the same however often it was stopped, readable from older logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scripted import NO_PROGRAM, ScriptedModel, heuristic, of_kind, run_search, settings

from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.sandbox.evaluator import Evaluator
from problems.tsp_construct import TASK


def test_a_program_a_copy_and_an_evaluation_are_three_things(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else arms are called equal though one of them evaluated half as many programs."""
    search = run_search(tmp_path / "run", evaluator, settings(directions=6, budget=30))
    candidates = [
        (status, original)
        for batch in of_kind(tmp_path / "run", "batch")
        if batch["generation"] >= 0
        for status, original in zip(batch["statuses"], batch["duplicate_of"], strict=True)
    ]
    ledger = search.ledger
    assert ledger.candidates == len(candidates)
    assert ledger.parsed == sum(status != "no_code" for status, _ in candidates) < ledger.candidates
    assert ledger.duplicates == sum(original is not None for _, original in candidates) > ledger.valid - ledger.new > 0
    assert ledger.tokens == ledger.prompt_tokens + ledger.new_tokens > 0


def test_replies_without_programs_and_copies_of_seeds(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the counters of a model that writes nothing, or nothing new, look like those of one that searches."""
    silent = run_search(tmp_path / "silent", evaluator, model=ScriptedModel(lambda request, weights: NO_PROGRAM)).ledger
    assert (silent.candidates, silent.parsed, silent.duplicates) == (13, 0, 0)
    parrot = ScriptedModel(lambda request, weights: TASK.seeds[0].code)
    copied = run_search(tmp_path / "parrot", evaluator, model=parrot).ledger
    assert (copied.parsed, copied.duplicates, copied.valid, copied.new) == (13, 13, 13, 0)


def test_skips_are_counted_by_their_reason(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a run that never learnt does not say whether its candidates failed or its rewards were all equal."""
    same = ScriptedModel(lambda request, weights: heuristic(0.5))
    ledger = run_search(tmp_path / "run", evaluator, settings(reward="graded"), same).ledger
    assert ledger.skip_reasons == {"all 3 directions had the same reward": ledger.skips}
    assert ledger.skips > 1
    assert of_kind(tmp_path / "run", "batch")[-1]["ledger"]["skip_reasons"] == ledger.skip_reasons


def test_details_of_a_reason_make_no_other_one() -> None:
    """Else a control that skips every update with its own figures fills the ledger with a line for each."""
    ledger = Ledger()
    ledger.skip("noise only: not applied, alpha 1")
    earlier = replace(ledger)
    ledger.skip("noise only: not applied, alpha 2")
    assert ledger.skip_reasons == {"noise only": 2}
    assert earlier.skip_reasons == {"noise only": 1}, "a copy is a picture of its moment"


def test_counters_of_other_releases_are_read() -> None:
    """Else the folder of an older or newer release cannot be opened any more."""
    assert Ledger.of({"candidates": 5, "unheard_of": 1}) == Ledger(candidates=5)
    assert Ledger.of(Ledger(updates=2).as_dict()) == Ledger(updates=2)
