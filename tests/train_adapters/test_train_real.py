"""The page on adapters, followed with a real model: train, kill, resume, replay, evaluate, export."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eoh_esopt.engine.events import CONFIG, EVENTS, HISTORY, SUMMARY, read_events
from eoh_esopt.engine.export import export
from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.replay import replay_history
from train_adapters.listener import TrainListener
from train_adapters.presets import TrainPreset, config_of
from train_adapters.run import resume, start

pytestmark = pytest.mark.model

PAGE = Path(__file__).parents[2] / "docs" / "write-an-adapter.md"
PROGRAM = "from eoh_esopt.cli.main import main; main()"
SETTINGS: dict[str, Any] = {
    "scope": "norms",
    "generations": 2,
    "directions": 3,
    "batch": 3,
    "seed": 5,
    "evaluate_every": 0,
    "final_repeats": 1,
}


def silent(text: str) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's adapter, saved as it says."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) < 60
    file = tmp_path_factory.mktemp("adapter") / "guess.py"
    file.write_text(code)
    return file


@pytest.fixture(scope="module")
def whole(adapter: Path, small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that nobody killed."""
    folder = tmp_path_factory.mktemp("train") / "whole"
    config = config_of(str(adapter), [TrainPreset({**SETTINGS, "model": str(small_model)})])
    start(config, folder, listener=TrainListener(), notify=silent)
    return folder


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, arguments)]


def environment() -> dict[str, str]:
    import torch

    threads = str(torch.get_num_threads())  # sums of floats depend on how many share the work
    return {**os.environ, "HF_HUB_OFFLINE": "1", "CI": "true", "COLUMNS": "120", "OMP_NUM_THREADS": threads}


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / SUMMARY).read_text()))


def test_a_training_moves_the_weights_and_leaves_its_files(whole: Path) -> None:
    """Else the page's commands lead to nothing."""
    summary = summary_of(whole)
    assert summary["ledger"]["episodes"] == 2 * 3 * 3
    assert summary["ledger"]["updates"] > 0
    assert summary["weights_before"] != summary["weights_after"]
    assert [one["split"] for one in summary["evaluations"]] == ["val", "val", "test"]
    assert {path.name for path in whole.iterdir()} == {EVENTS, CONFIG, HISTORY, SUMMARY, ".lock"}
    assert summary["memory"]["peak_bytes"] >= summary["memory"]["inference_bytes"] > 0


def test_a_replay_gives_the_trained_weights(whole: Path, small_model: Path) -> None:
    """Else what was learnt cannot be used: `eoh-esopt replay` makes it again like this."""
    adapted = replay_history(load_history(whole), str(small_model), list)
    assert adapted.checksum == summary_of(whole)["weights_after"]
    assert adapted.verdict == "The weights equal the run's."


def test_an_export_says_what_it_was_trained_on(whole: Path, small_model: Path, tmp_path: Path) -> None:
    """Else its card speaks of a search that there was not."""
    history = load_history(whole)
    adapted = replay_history(history, str(small_model), list)
    out = tmp_path / "adapted"
    export(adapted, history, whole, out, base=str(small_model), name="adapted", command="eoh-esopt export")
    card = (out / "README.md").read_text()
    assert "during a training of an agent" in card
    assert "The training was on `guess`. On the 1 task of its split test the mean reward is" in card
    assert adapted.checksum in card
    assert "search" not in card


def test_a_killed_training_goes_on_to_the_same_weights(
    whole: Path, adapter: Path, small_model: Path, tmp_path: Path
) -> None:
    """Else a power cut costs the training, or the resumed one is another one."""
    folder = tmp_path / "killed"
    options = [part for name, value in SETTINGS.items() for part in (f"--{name.replace('_', '-')}", value)]
    arguments = command("train", adapter, "--model", small_model, "--out", folder, *options)
    total = (whole / EVENTS).read_bytes().count(b"\n")
    output = tmp_path / "output"
    with output.open("w") as log, subprocess.Popen(arguments, env=environment(), stdout=log, stderr=log) as process:
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < 300:
            if (folder / EVENTS).exists() and (folder / EVENTS).read_bytes().count(b"\n") >= total // 2:
                break
            time.sleep(0.005)
        process.kill()
    assert process.returncode == -9, output.read_text()
    resume(folder, listener=TrainListener(), notify=silent)
    assert (folder / HISTORY).read_text() == (whole / HISTORY).read_text()
    resumed, before = summary_of(folder), summary_of(whole)
    for name in ("weights_after", "ledger", "evaluations"):
        assert resumed[name] == before[name]
    assert [event["event"] for event in read_events(folder)].count("resume") == 1


def test_an_agent_is_evaluated_as_the_training_did(whole: Path, adapter: Path, tmp_path: Path) -> None:
    """Else the evaluation of a trained agent is of other weights, or not what the training says of it."""
    done = subprocess.run(
        command("evaluate-agent", adapter, "--history", whole, "--seed", 5, "--repeats", 1, "--format", "json"),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found, last = json.loads(done.stdout), summary_of(whole)["evaluations"][-1]
    assert found["rewards"] == last["rewards"]
    assert found["mean"] == last["mean"]
