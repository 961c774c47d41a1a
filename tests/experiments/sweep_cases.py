"""Sweeps for the tests: cells that play a run in a moment, and real ones at a server of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eoh_esopt.engine.events import read_events
from eoh_esopt.experiments.replicas import Replica
from eoh_esopt.experiments.sweep import Cell

PROGRAM = "from eoh_esopt.cli.main import main; main()"

PLAYED = """
import json, os, pathlib, sys, time
folder, task, seed, budget, behaviour = sys.argv[1:]
folder = pathlib.Path(folder)
path = folder / "events.jsonl"
def log(kind, **fields):
    with path.open("a") as stream:
        stream.write(json.dumps({"event": kind, **fields}) + "\\n")
names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
began = {"seen": {name: os.environ.get(name) for name in names}, "at": time.monotonic()}
(folder / "played.json").write_text(json.dumps(began))
scale = {"measure": "length", "maximise": False, "references": {}, "ceiling": None}
log("start", config=json.loads(os.environ["PLAYED_CONFIG"]), model={"parameters": 1}, **scale)
if behaviour == "fails":
    print("some output")
    sys.exit("Error: the weights are gone.")
if behaviour == "dies":
    os.kill(os.getpid(), 9)
if behaviour == "hangs":
    time.sleep(600)
if behaviour == "damages":
    path.open("a").write('{"event": "batch", ' + "\\n")
    time.sleep(600)
if behaviour == "slow":
    time.sleep(1)
log("batch", ledger={"candidates": int(budget)}, seconds=float(seed), best=6.5)
if behaviour != "stops early":
    log("end", seconds=float(seed))
(folder / "played.json").write_text(json.dumps({**began, "ended": time.monotonic()}))
"""
"""A program that leaves a log as a run does."""


def playing(behaviours: Callable[[Cell], str]) -> Callable[[Cell, Path, Replica, int], list[str]]:
    """In place of the command line of a cell: a program that only plays a run.

    Args:
        behaviours: what a cell does: "", "fails", "dies", "hangs", "damages", "slow" or "stops early".
    """

    def command(cell: Cell, folder: Path, replica: Replica, threads: int) -> list[str]:
        config = json.loads(cell.config.resolved(1).to_json())
        program = f"import os\nos.environ['PLAYED_CONFIG'] = {json.dumps(config)!r}\n{PLAYED}"
        arguments = (str(folder), cell.task, str(cell.config.seed), str(cell.config.budget), behaviours(cell))
        return [sys.executable, "-S", "-c", program, *arguments]

    return command


def story(folder: Path) -> list[str]:
    """All that happened in a run after its start, as far as the clock and the workers do not decide it."""
    lines = []
    for event in read_events(folder):
        for name in ("seconds", "timings"):
            event.pop(name, None)
        if event["event"] == "replies":  # how many come at once is no part of the story
            lines += [json.dumps({**one, "seconds": 0}) for one in event["candidates"]]
        elif event["event"] not in ("start", "resume"):
            lines.append(json.dumps(event))
    return sorted(lines)


def begin(*arguments: object) -> subprocess.Popen[str]:
    """`eoh-esopt` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "CI": "true", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str] | None = None, seconds: float = 240) -> None:
    """Wait until something is so; that a process ends before is an error."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        if process is not None and process.poll() is not None:
            raise AssertionError(f"it ended before: {process.communicate()[0]}")
        time.sleep(0.02)


def states(out: Path) -> dict[str, str]:
    """The state of each cell, as the sweep's index says it."""
    index = json.loads((out / "sweep.json").read_text())
    return {cell["cell"]: cell["state"] for cell in index["cells"]}


def bytes_of(out: Path, cells: Sequence[str]) -> dict[str, bytes]:
    """The logs of some cells."""
    return {cell: (out / cell / "events.jsonl").read_bytes() for cell in cells}
