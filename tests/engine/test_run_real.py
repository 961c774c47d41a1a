"""Whole runs of the real command line with a real model: what a run leaves behind, killed or not, and its replay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eoh_esopt.engine.events import BEST, CONFIG, EVENTS, HISTORY, SUMMARY, read_events
from eoh_esopt.engine.history import load_history
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.spec import ProblemSpec

pytestmark = pytest.mark.model

PROGRAM = "from eoh_esopt.cli.main import main; main()"
SMALL = ["--population", "2", "--max-new-tokens", "48", "--workers", "2"]
NORMS = [*SMALL, "--scope", "norms", "--directions", "3", "--samples-per-direction", "2", "--budget", "15"]
FULL = [*SMALL, "--scope", "full", "--method", "esopt-sample", "--directions", "4", "--budget", "7"]
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "CI": "true", "COLUMNS": "120"}


@dataclass(frozen=True)
class Finished:
    """A run that has ended."""

    folder: Path
    output: str

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / SUMMARY).read_text()))


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, arguments)]


def call(*arguments: object) -> str:
    """The standard output of a command that succeeds."""
    done = subprocess.run(command(*arguments), env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(model: Path, out: Path, *options: object) -> Finished:
    return Finished(out, call("run", "tsp_construct", "--model", model, "--out", out, *options))


def learning_run(model: Path, folder: Path, options: list[str]) -> Finished:
    """A run with an update: with so few candidates, all may be worth the same on one processor or another."""
    for seed in (3, 4, 5):
        finished = run(model, folder / f"seed-{seed}", *options, "--seed", seed)
        if finished.summary["ledger"]["updates"]:
            break
    return finished


@pytest.fixture(scope="module")
def norms(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run that moves the gains of the norms."""
    return learning_run(small_model, tmp_path_factory.mktemp("norms"), NORMS)


@pytest.fixture(scope="module")
def full(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run that moves all weights."""
    return learning_run(small_model, tmp_path_factory.mktemp("full"), FULL)


@pytest.fixture(params=["norms", "full"])
def finished(request: pytest.FixtureRequest) -> Finished:
    """Either run."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in ("seconds", "timings")}


def test_a_run_leaves_its_summary_and_files(finished: Finished) -> None:
    """Else results have to be read off the screen, or a run cannot be resumed or replayed."""
    summary = finished.summary
    config = json.loads((finished.folder / CONFIG).read_text())
    assert summary["ledger"]["candidates"] == config["budget"]
    start = 0 if config["method"] == "esopt-sample" else 2
    assert summary["ledger"]["start_candidates"] == start
    assert summary["ledger"]["model_calls"] == config["budget"] + start
    assert summary["seed"] == config["seed"]
    assert summary["seconds"] > 0
    assert summary["references"]["optimum"] < summary["best"]["objective"]
    assert {path.name for path in finished.folder.iterdir()} == {BEST, CONFIG, EVENTS, HISTORY, SUMMARY, ".lock"}
    events = read_events(finished.folder)
    assert (events[0]["event"], events[-1]["event"]) == ("start", "end")


def test_the_weights_have_moved(finished: Finished) -> None:
    """Else the model learns nothing while the run claims that it does."""
    summary, history = finished.summary, load_history(finished.folder)
    assert summary["ledger"]["updates"] == len(history.updates) > 0
    assert (history.base_checksum, history.final_checksum) == (summary["weights_before"], summary["weights_after"])
    assert history.base_checksum != history.final_checksum


def test_the_best_heuristic_is_worth_what_the_run_says(finished: Finished) -> None:
    """Else the file that a user takes away is not the heuristic that was scored."""
    with Evaluator(ProblemSpec.named("tsp_construct"), workers=1) as evaluator:
        [(_, outcome)] = evaluator.evaluate([(finished.folder / BEST).read_text()])
    assert outcome.objective == finished.summary["best"]["objective"]


def test_the_screen_says_what_the_files_say(finished: Finished) -> None:
    """Else a user without a terminal sees nothing of the run."""
    summary = finished.summary
    for text in (
        "Self-test passed",
        "best heuristic",
        f"{summary['best']['objective']:.4f}",
        "gap to optimum",
        "update ",
    ):
        assert text in finished.output
    assert str(finished.folder / EVENTS) in finished.output


def test_a_replay_gives_the_same_weights_and_saves_them(finished: Finished, small_model: Path, tmp_path: Path) -> None:
    """Else what was learnt cannot be used, and histories are worthless."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    output = call("replay", finished.folder, "--save", tmp_path / "adapted")
    assert finished.summary["weights_after"] in output
    assert "The weights equal the run's." in output
    before = AutoModelForCausalLM.from_pretrained(small_model).state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "adapted").state_dict()
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert moved
    if load_history(finished.folder).scope == "norms":
        assert all("norm" in name for name in moved)
    assert AutoTokenizer.from_pretrained(tmp_path / "adapted").chat_template


def test_a_finished_run_is_left_as_it_is(norms: Finished) -> None:
    """Else resuming by mistake loads the model, and changes the record of a run that is over."""
    before = {path: path.read_bytes() for path in norms.folder.iterdir()}
    output = call("run", "--resume", norms.folder)
    assert "is finished: there is nothing to go on with" in output
    assert "Loading" not in output
    assert f"{norms.summary['best']['objective']:.4f}" in output
    assert {path: path.read_bytes() for path in norms.folder.iterdir()} == before


def test_without_learning_the_weights_stay(small_model: Path, tmp_path: Path) -> None:
    """Else the control arm is no control."""
    shortest = ("--population", 1, "--directions", 1, "--budget", 2, "--max-new-tokens", 8)
    summary = run(small_model, tmp_path / "run", "--method", "eoh", *shortest).summary
    assert summary["weights_before"] == summary["weights_after"]
    assert (summary["ledger"]["updates"], summary["ledger"]["candidates"]) == (0, 2)


def lines(folder: Path) -> int:
    path = folder / EVENTS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def descendants(pid: int) -> set[int]:
    """Every process under one, from /proc."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found: set[int] = set()
    while new := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= new
    return found


def kill_after(arguments: list[str], folder: Path, count: int) -> set[int]:
    """Start a command, kill it without mercy once its log has so many lines; the processes it had started."""
    log = (folder.parent / f"{folder.name}.log").open("w")
    with log, subprocess.Popen(arguments, env=ENVIRONMENT, stdout=log, stderr=log) as process:
        began = time.monotonic()
        while lines(folder) < count and process.poll() is None and time.monotonic() - began < 200:
            time.sleep(0.01)
        started = descendants(process.pid)
        process.kill()
    assert process.returncode == -9, "the run ended before it could be killed"
    return started


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if (Path("/proc") / str(pid) / "exe").exists()}


def decisions(folder: Path) -> list[tuple[Any, ...]]:
    kept = ("event", "step", "seeds", "rewards", "weights", "ids", "statuses", "objectives", "population", "ledger")
    found = [event for event in read_events(folder) if event["event"] in ("update", "skip", "batch")]
    return [tuple(event.get(name) for name in kept) for event in found]


def test_a_killed_run_ends_as_if_it_had_not_been_killed(norms: Finished, small_model: Path, tmp_path: Path) -> None:
    """Else a power cut costs the run, or the resumed run is another one; or orphans keep the processors busy."""
    folder = tmp_path / "run"
    begin = command(
        "run", "tsp_construct", "--model", small_model, "--out", folder, *NORMS, "--seed", norms.summary["seed"]
    )
    total = lines(norms.folder)
    started = kill_after(begin, folder, int.from_bytes(os.urandom(2), "little") % (total - 4) + 1)
    stopped_at = lines(folder)
    assert len(started) >= 2
    deadline = time.monotonic() + 10
    while alive(started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(started), "sandbox workers outlived the run"
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with (copy / EVENTS).open("a") as log:
        log.write('{"event": "outc')
    output = call("run", "--resume", copy)
    note = f"killed after {stopped_at} lines"
    assert "resumed" in output
    assert (copy / HISTORY).read_text() == (norms.folder / HISTORY).read_text(), note
    assert (copy / BEST).read_text() == (norms.folder / BEST).read_text(), note
    resumed = Finished(copy, output)
    assert without_times(resumed.summary) == without_times(norms.summary), note
    assert decisions(copy) == decisions(norms.folder), note
