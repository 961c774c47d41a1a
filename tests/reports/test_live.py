"""What a user sees of a run: plain lines, the live display, and the summary at the end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from eoh_esopt.engine.events import BEST
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.listener import BatchReport
from eoh_esopt.reports.live import LineListener, LiveListener, headline, watch
from eoh_esopt.reports.summary import print_summary
from operators.errors import UserError
from operators.records import Candidate, Outcome, Skip, Status, Update

FACTS: dict[str, Any] = {
    "event": "start",
    "config": {
        "method": "esopt-eoh",
        "problem": "tsp_construct",
        "budget": 40,
        "seed": 7,
        "sigma": 0.06,
        "sigma_final": 0.02,
        "alpha": 0.03,
        "directions": 2,
        "samples_per_direction": 1,
        "reward": "graded",
        "shuffle_rewards": False,
    },
    "model": {
        "model": "a-model",
        "parameters": 135e6,
        "dtype": "bfloat16",
        "device": "cpu",
        "scope": "norms",
        "scope_elements": 35136,
    },
    "isolation": "landlock, seccomp",
    "measure": "tour length",
    "maximise": False,
    "references": {"optimum": 5.7106, "nearest neighbour": 7.0},
    "ceiling": "optimum",
}
OK = Outcome(Status.OK, 6.5, (6.0, 7.0), 10)
COPY = Outcome(Status.OK, 6.5, (6.0, 7.0), 10, duplicate_of=3)
RAISED = Outcome(Status.RAISED, detail="IndexError")
HOSTILE = "Weigh [/red] and [bold]x[i] by \x07 :smile: {a}"
POPULATION = (Candidate(3, "m1", HOSTILE, "", 6.5), Candidate(0, "seed", "Go to the nearest.", "", 7.0))
UPDATE = Update(0, (5, 6), (1.0, 0.5), (1.0, -1.0), 0.03, 0.06)


def report(decision: Update | Skip | None, *outcomes: Outcome, generation: int = 0) -> BatchReport:
    return BatchReport(generation, "m1", outcomes, decision, POPULATION, Ledger(candidates=12))


def terminal() -> Console:
    return Console(force_terminal=True, file=io.StringIO(), width=120, height=50)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def feed(listener: LineListener) -> None:
    """A run of three batches."""
    listener.on_start(FACTS)
    for generation, decision in ((-1, None), (0, UPDATE), (0, Skip(1, "all 2 directions [had] the same reward"))):
        listener.on_batch(generation, "m1", 3)
        listener.on_replies(3)
        listener.on_outcome(3, OK)
        listener.on_batch_end(report(decision, OK, COPY, RAISED, generation=generation))
    listener.on_end({})


def test_the_headline_names_what_is_not_the_papers() -> None:
    """Else a user takes the results of a variant for the method's."""
    variants = {"shaping": "centred-rank", "antithetic": True, "momentum": 0.5, "adaptive_sigma": True}
    [said] = [line for line in headline({**FACTS, "config": {**FACTS["config"], **variants}}) if "scope" in line]
    assert said.endswith("reward graded, shaping centred-rank, antithetic pairs, momentum 0.5, adaptive sigma")
    plain = {"shaping": "z-score", "antithetic": False, "momentum": 0.0, "adaptive_sigma": False}
    assert list(headline({**FACTS, "config": {**FACTS["config"], **plain}})) == list(headline(FACTS))


def test_a_line_says_what_a_batch_brought() -> None:
    """Else a log file shows neither progress nor learning."""
    console = Console(file=io.StringIO(), width=40)
    feed(LineListener(console))
    lines = text(console).splitlines()
    assert len(lines) == 6, "lines are not wrapped, whatever the width"
    assert "budget 40 candidates, seed 7, model a-model (135 M, bfloat16, cpu)" in lines[0]
    assert "sigma 0.06 to 0.02, alpha 0.03, 2 directions x 1 samples, reward graded" in lines[1]
    assert lines[2] == "sandbox: landlock, seccomp"
    assert "start m1" in lines[3]
    assert "12 m1   valid   2/3   new   1  best 6.5000  update 0: sigma 0.06, reward 0.750 +- 0.250" in lines[4]
    assert lines[5].endswith("update 1 skipped: all 2 directions [had] the same reward")


def test_a_control_and_a_resumed_run_are_named_as_such() -> None:
    """Else the output of a control is taken for a result."""
    console = Console(file=io.StringIO())
    facts = {**FACTS, "event": "resume", "config": {**FACTS["config"], "shuffle_rewards": True}}
    LineListener(console).on_start(facts)
    assert "SHUFFLED (control)" in text(console)
    assert "resumed" in text(console)


def test_without_learning_no_learning_is_shown() -> None:
    """Else the control arm shows a sigma that it does not use."""
    console = Console(file=io.StringIO())
    LineListener(console).on_start({**FACTS, "config": {**FACTS["config"], "method": "eoh"}})
    assert "sigma" not in text(console)


def test_the_display_shows_population_updates_and_failures() -> None:
    """Else one has to read the log to see what a run is doing; or a word of the model's ends the run."""
    console = terminal()
    listener = LiveListener(console)
    feed(listener)
    listener.stop()
    shown = text(console)
    for part in (
        "Weigh [/red] and [bold]x[i]",
        "m1 #3",
        "6.5000",
        "optimum 5.7106",
        "0.750 ± 0.250",
        "weights moved",
        "skipped: all 2 directions [had] the same",
        "failures and duplicates: ",
        "raised 3",
        "generation 1, m1",
        "12/40",
    ):
        assert part in shown


def test_the_display_can_be_closed_at_any_time() -> None:
    """Else an error before the first batch is lost under one of the display."""
    LiveListener(terminal()).stop()
    started = LiveListener(terminal())
    started.on_start(FACTS)
    started.stop()
    started.stop()


def test_without_a_terminal_there_are_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else log files and CI fill with control characters."""
    with watch() as listener:
        assert type(listener) is LineListener
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("CI", "true")
    with watch() as listener:
        assert type(listener) is LineListener
    monkeypatch.delenv("CI")
    with watch() as listener:
        assert type(listener) is LiveListener


SUMMARY: dict[str, Any] = {
    "best": {"id": 3, "operator": "m1", "idea": HOSTILE, "objective": 6.28166},
    **{name: FACTS[name] for name in ("measure", "maximise", "references", "ceiling")},
    "ledger": Ledger(2, 40, 42, 1000, 500, 30, 20, 10, 3, 1).as_dict(),
    "weights_before": "a" * 64,
    "weights_after": "b" * 64,
    "drift": 0.0,
    "seconds": 90.0,
    "seed": 7,
}


def test_the_summary_says_what_was_found_and_what_it_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the end of a run leaves the user to compute what it was worth, or its folder's name is mangled."""
    folder = tmp_path / "runs[red]"
    folder.mkdir()
    (folder / BEST).write_text("# é [/red]\ndef select_next_node(): ...\n", encoding="utf-8")
    print_summary(folder, SUMMARY)
    shown = capsys.readouterr().out
    assert "# é [/red]" in shown
    gaps = {line.split("│")[1].strip(): line.split("│")[3].strip() for line in shown.splitlines() if "│" in line}
    assert gaps == {"optimum": "0.0%", "best heuristic found": "10.0%", "nearest neighbour": "22.6%"}
    for part in ("valid 20 (50%)", "new 10 (25%)", "evaluations 30", "model calls 42", "1000 read and 500 written"):
        assert part in shown.replace("\n", " ")
    assert "updates applied 3, skipped 1; 1.5 minutes" in shown
    assert f"{'a' * 16} before, {'b' * 16} after" in shown
    assert str(folder / BEST) in shown


def test_an_older_summary_claims_no_counts_that_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else a run of an earlier release is said to have parsed nothing."""
    (tmp_path / BEST).write_text("def select_next_node(): ...\n")
    known = {name: SUMMARY["ledger"][name] for name in ("candidates", "valid", "new", "updates", "skips")}
    print_summary(tmp_path, {**SUMMARY, "ledger": known})
    shown = capsys.readouterr().out
    assert "candidates 40: valid 20 (50%)" in shown
    assert "parsed" not in shown


def test_the_summary_counts_what_the_ledger_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else copies, replies without a program, skips and the price of learning show only to who reads the log."""
    (tmp_path / BEST).write_text("def select_next_node(): ...\n")
    ledger = Ledger.of({**SUMMARY["ledger"], "parsed": 36, "duplicates": 12, "skip_reasons": {"all were equal": 1}})
    timings = {"generate": 60.04, "perturb": None, "restore": None, "update": 2.0, "evaluate": 9.0, "sandbox": 80.0}
    print_summary(tmp_path, {**SUMMARY, "ledger": ledger.as_dict(), "timings": timings, "parameters": 10**9})
    shown = " ".join(capsys.readouterr().out.split())
    assert "candidates 40: parsed 36 (90%), duplicates 12 (30%), valid 20 (50%), new 10 (25%)" in shown
    assert "500 written, 3e+12 model FLOPs" in shown
    assert "updates applied 3, skipped 1 (1: all were equal); 1.5 minutes: writing 60.0 s, updating 2.0 s" in shown


def test_a_summary_without_its_heuristic_is_refused(tmp_path: Path) -> None:
    """Else resuming a finished run whose folder lost a file ends in a traceback."""
    with pytest.raises(UserError, match=r"Cannot read .*Restore"):
        print_summary(tmp_path, SUMMARY)


def test_without_a_known_optimum_no_gap_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else a problem without a known optimum ends a run in an error, or shows a gap to nothing."""
    (tmp_path / BEST).write_text("pass\n")
    print_summary(tmp_path, {**SUMMARY, "references": {}, "ceiling": None, "ledger": Ledger().as_dict()})
    assert "%" not in next(line for line in capsys.readouterr().out.splitlines() if "best heuristic found" in line)


def test_what_is_maximised_is_shown_as_people_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the value of a knapsack shows as a negative number, and the ceiling as the worst of all."""
    (tmp_path / BEST).write_text("pass\n")
    facts = {"measure": "total value", "maximise": True, "references": {"greedy": 40.0, "optimum": 50.0}}
    best = {**SUMMARY["best"], "objective": -45.0}
    print_summary(tmp_path, {**SUMMARY, **facts, "ceiling": "optimum", "best": best})
    shown = capsys.readouterr().out
    rows = [tuple(cell.strip() for cell in line.split("│")[1:4]) for line in shown.splitlines() if "│" in line]
    assert rows == [
        ("optimum", "50.0000", "0.0%"),
        ("best heuristic found", "45.0000", "10.0%"),
        ("greedy", "40.0000", "20.0%"),
    ]
    assert "total value, higher is better" in shown
