"""Sweeps of real runs, each a process of its own, at a server of ours: whole, killed, interrupted and failing."""

from __future__ import annotations

import fcntl
import signal
from pathlib import Path
from typing import NamedTuple

import pytest
from fake_server import FakeServer, is_silent, says, writes
from sweep_cases import begin, bytes_of, states, story, wait_for

from eoh_esopt.experiments.run_record import read_run

TEXT = """
tasks = ["tsp_construct"]
methods = ["eoh", "sample"]
seeds = [1]
workers = 1
replicas = [{{ base_url = "{url}" }}]

[settings]
model = "org/small"
budget = 8
population = 2
directions = 2
max_batch = 1
timeout = 60
"""
ALL = ["tsp_construct/eoh/seed-1", "tsp_construct/sample/seed-1"]
ASKED = {"eoh": 1 + 2 + 8, "sample": 1 + 8}
"""Requests of a cell: a first word, the start population of eoh, and the budget."""


class Whole(NamedTuple):
    """A sweep that nothing happened to."""

    out: Path
    said: str
    asked: int


def sweep_file(folder: Path, server: FakeServer, extra: str = "") -> Path:
    path = folder / "mine.toml"
    path.write_text(TEXT.format(url=server.url) + extra)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    with FakeServer(says(writes)) as server:
        process = begin("sweep", sweep_file(folder, server), "--out", folder / "out")
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return Whole(folder / "out", said, len(server.asked))


def test_every_cell_is_a_run_of_its_own(whole: Whole) -> None:
    """Else the tools for runs cannot read what a sweep leaves."""
    assert states(whole.out) == dict.fromkeys(ALL, "finished")
    for name in ALL:
        run = read_run(whole.out / name)
        assert (run.config.seed, run.ledger.candidates) == (int(name[-1]), 8)
        assert f"/{run.config.method}/" in name
        assert (whole.out / name / "cell.log").read_text().startswith("$ ")
    assert whole.asked == sum(ASKED.values())
    assert f"eoh-esopt compare {whole.out}" in whole.said
    assert f"eoh-esopt report {whole.out} -o {whole.out}/report.html" in whole.said


def is_free(folder: Path) -> bool:
    """Whether no process works in a run's folder."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["killed", "Ctrl-C"])
def test_a_sweep_that_was_stopped_goes_on(whole: Whole, tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Else a power cut or Ctrl-C costs finished runs, leaves processes at work, or changes what comes out."""
    before_the_stop = ASKED["eoh"] + 5
    with FakeServer(*[says(writes)] * before_the_stop, is_silent) as server:
        arguments = ("sweep", sweep_file(tmp_path, server), "--out", tmp_path / "out")
        process = begin(*arguments)
        wait_for(lambda: len(server.asked) > before_the_stop, process)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == code, said
        wait_for(lambda: is_free(tmp_path / "out" / ALL[1]))
        finished = bytes_of(tmp_path / "out", ALL[:1])
        server.script = (says(writes),)
        asked = len(server.asked)
        again = begin(*arguments)
        said, _ = again.communicate(timeout=300)
        assert again.returncode == 0, said
        assert len(server.asked) - asked == 1 + 8 - 4
    assert "2 cells, 1 finished already" in said
    assert f"goes on   {ALL[1]}" in said
    assert bytes_of(tmp_path / "out", ALL[:1]) == finished
    for name in ALL:
        assert story(tmp_path / "out" / name) == story(whole.out / name)


def test_a_cell_that_fails_says_why_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Else one bad arm ends the sweep, or the exit code tells a script that all went well."""
    arm = "\n[arms.bad]\nmethod = 'eoh'\ndata = 'nowhere'\n"
    with FakeServer(says(writes)) as server:
        process = begin(
            "sweep", sweep_file(tmp_path, server, arm), "--out", tmp_path / "out", "--only", "*/[bs]*/seed-1"
        )
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 1, said
    assert states(tmp_path / "out") == {ALL[1]: "finished", "tsp_construct/bad/seed-1": "failed"}
    assert "1 of 2 cells finished, 1 failed" in said
    assert str(tmp_path / "nowhere") in said
    assert "nowhere" in (tmp_path / "out" / "tsp_construct" / "bad" / "seed-1" / "cell.log").read_text()
