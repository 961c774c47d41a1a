"""kill -9 of the browser, of the site and of the trainer in the middle of an episode: nothing else is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from training_cases import of_kind, train
from web_cases import adapter, config
from web_models import Interrupted, opens
from web_processes import alive, children

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.testing.scripted_model import ScriptedModel
from train_adapters.adapter import Ending, Episode
from train_adapters.rollout import Job, Table, play, waves
from train_adapters.webarena.adapter import WebAdapter
from train_adapters.webarena.fleet import Seat
from train_adapters.webarena.local import LocalStage

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def web() -> Iterator[WebAdapter]:
    made = adapter()
    yield made
    made.close()


def played(web: WebAdapter, model: ScriptedModel) -> list[Episode]:
    table = Table(web, model, 1, Timekeeper(model, None, Timings()))
    jobs = [Job(task, 0, None) for task in web.tasks("train")[:4]]
    return [one for wave in waves(model, jobs, web.side_by_side) for one in play(table, wave, "train/0")]


def kill_chromium(seat: Seat) -> None:
    pid = seat.browser.pids[1]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_worker(seat: Seat) -> None:
    pid = seat.browser.pids[0]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_site(seat: Seat) -> None:
    assert isinstance(seat.stage, LocalStage)
    assert seat.stage.pid is not None
    os.kill(seat.stage.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_chromium, kill_worker, kill_site])
def test_a_kill_costs_no_episode(web: WebAdapter, kill: Callable[[Seat], None]) -> None:
    """The local sites are put back for every episode, so the one that was hit is begun anew; the others go on."""
    model = Interrupted(1, lambda: kill(web._fleet.seats[0]))
    assert [(one.ending, one.reward, one.turns) for one in played(web, model)] == [(Ending.SCORED, 1.0, 2)] * 4
    assert sum(model.batch_sizes) == 9, "one of four episodes of two turns was begun anew after its first"


def test_a_killed_training_leaves_no_process_and_can_be_resumed(tmp_path: Path) -> None:
    """Browsers that stay behind would fill the memory; a training that goes on otherwise would be another one."""
    folder = tmp_path / "killed"
    paths = os.pathsep.join(map(str, (ROOT, HERE, ROOT / "tests" / "train_adapters")))
    process = subprocess.Popen(
        [sys.executable, str(HERE / "killed_web_training.py"), str(folder), "6"],
        env={**os.environ, "PYTHONPATH": paths},
    )
    started: set[int] = set()
    while process.poll() is None:
        started |= children(process.pid)
        time.sleep(0.2)
    assert process.returncode == -signal.SIGKILL
    assert len(started) > 6
    assert not of_kind(folder, "end")
    until = time.monotonic() + 20
    while any(map(alive, started)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [pid for pid in started if alive(pid)]
    summaries = []
    for place in (folder, tmp_path / "whole"):
        web = adapter()
        summaries.append(train(place, config(), ScriptedModel(opens), web))  # type: ignore[arg-type]
        web.close()
    for name in ("weights_after", "ledger"):
        assert summaries[0][name] == summaries[1][name]
    assert summaries[0]["ledger"]["failures"]["shop"]["episodes"] > 0
