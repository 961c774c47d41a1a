"""Runs the cells of a sweep: those that are not finished, some at once, to the end of each whatever becomes of others.

What is finished is seen from the cells' own logs, so a sweep can be killed at any moment and started again.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import write_atomically
from eoh_esopt.experiments.cell_log import CellLog
from eoh_esopt.experiments.cell_process import CellProcess, clear_empty_log, last_lines, stop_all
from eoh_esopt.experiments.replicas import Replica
from eoh_esopt.experiments.sweep import Cell
from operators.errors import UserError

INDEX = "sweep.json"
FAILURES_IN_A_ROW = 3
"""After so many a replica gets no more cells while there is another: one dead server would fail all that are left."""

_POLL_S = 0.2


class SweepListener:
    """Hears of a sweep's progress. Every method does nothing unless overridden."""

    def on_start(self, sweep: SweepRun) -> None:
        """The sweep begins."""

    def on_begin(self, sweep: SweepRun, cell: Cell, replica: Replica) -> None:
        """A cell begins or goes on."""

    def on_progress(self, sweep: SweepRun) -> None:
        """Some time has passed."""

    def on_finish(self, sweep: SweepRun, cell: Cell) -> None:
        """A cell is finished."""

    def on_failure(self, sweep: SweepRun, cell: Cell, why: str) -> None:
        """A cell has failed."""

    def on_replica_lost(self, sweep: SweepRun, replica: Replica) -> None:
        """A replica gets no more cells, because they failed there one after the other."""


@dataclass
class SweepRun:
    """The cells of a sweep and how far each is.

    Attributes:
        cells: all of them, in the order they are run.
        out: the sweep's folder.
        logs: of each cell, by its name.
        failures: why cells failed in this sitting, by their names.
        running: the cells at work.
    """

    cells: Sequence[Cell]
    out: Path
    logs: Mapping[str, CellLog]
    failures: dict[str, str] = field(default_factory=dict)
    running: list[CellProcess] = field(default_factory=list)

    @classmethod
    def of(cls, cells: Sequence[Cell], out: Path) -> SweepRun:
        """How far the cells of a folder are. A cell whose log cannot be read counts as failed.

        Raises:
            UserError: a cell began with other settings than the sweep has now.
        """
        sweep = cls(cells, out, {cell.name: CellLog(out / cell.folder) for cell in cells})
        for cell in cells:
            try:
                sweep.logs[cell.name].read_on()
            except UserError as error:
                sweep.failures[cell.name] = str(error)
                continue
            sweep.logs[cell.name].check_settings(cell.config)
        return sweep

    def state(self, cell: Cell) -> str:
        """finished, failed, running, begun or waiting."""
        if self.logs[cell.name].ended:
            return "finished"
        if cell.name in self.failures:
            return "failed"
        if any(one.cell == cell for one in self.running):
            return "running"
        return "waiting" if self.logs[cell.name].start is None else "begun"

    def count(self, state: str) -> int:
        """How many cells are in a state."""
        return sum(self.state(cell) == state for cell in self.cells)

    def seconds_left(self, at_once: int) -> float | None:
        """What the candidates that are left will take at the pace so far; None before the first are written.

        Args:
            at_once: cells that run at once.
        """
        paces = self._paces()
        if not paces:
            return None
        mean = sum(paces.values()) / len(paces)
        left = [cell for cell in self.cells if self.state(cell) not in ("finished", "failed")]
        work = [
            (cell.config.budget - self.logs[cell.name].candidates) * paces.get((cell.task, cell.arm), mean)
            for cell in left
        ]
        return max(sum(work) / at_once, max(work, default=0.0))

    def _paces(self) -> dict[tuple[str, str], float]:
        """Seconds of a candidate, by task and arm."""
        spent: dict[tuple[str, str], tuple[float, int]] = {}
        for cell in self.cells:
            log, key = self.logs[cell.name], (cell.task, cell.arm)
            if log.candidates:
                seconds, candidates = spent.get(key, (0.0, 0))
                spent[key] = seconds + log.seconds, candidates + log.candidates
        return {key: seconds / candidates for key, (seconds, candidates) in spent.items()}

    def write_index(self) -> None:
        """The file that says what is where, written anew from the cells' logs each time and never read by us."""
        cells = [self._entry(cell) for cell in self.cells]
        write_atomically(self.out / INDEX, json.dumps({"cells": cells}, indent=1) + "\n")

    def _entry(self, cell: Cell) -> dict[str, Any]:
        entry = {
            "cell": cell.name,
            "task": cell.task,
            "arm": cell.arm,
            "method": cell.config.method,
            "budget": cell.config.budget,
            "seed": cell.config.seed,
            "state": self.state(cell),
        }
        return entry | ({"why": self.failures[cell.name]} if entry["state"] == "failed" else {})


def run_cells(sweep: SweepRun, replicas: Sequence[Replica], threads: int, listener: SweepListener) -> None:
    """Run what is not finished, in order, one cell at a time on each replica.

    Args:
        sweep: the cells; what failed afterwards is in its `failures`.
        replicas: where cells run.
        threads: of each cell.
        listener: hears of the progress.
    """
    waiting = deque(cell for cell in sweep.cells if sweep.state(cell) in ("waiting", "begun"))
    free = deque(replicas)
    failures = Counter[str]()  # in a row, by replica
    sweep.write_index()
    listener.on_start(sweep)
    try:
        while waiting or sweep.running:
            while waiting and free:
                replica = free.popleft()
                if not _begin(sweep, waiting.popleft(), replica, threads, listener):
                    free.append(replica)
            time.sleep(_POLL_S)
            for one in list(sweep.running):
                if _look_at(sweep, one, listener):
                    name = one.replica.name
                    failures[name] = failures[name] + 1 if one.cell.name in sweep.failures else 0
                    if failures[name] < FAILURES_IN_A_ROW or not (free or sweep.running):
                        free.append(one.replica)
                    else:
                        listener.on_replica_lost(sweep, one.replica)
            listener.on_progress(sweep)
    finally:
        stop_all(sweep.running)
        for one in sweep.running:
            with suppress(UserError):  # a damaged log is told of when the cell is taken up again
                sweep.logs[one.cell.name].read_on()
        sweep.running.clear()
        sweep.write_index()


def _begin(sweep: SweepRun, cell: Cell, replica: Replica, threads: int, listener: SweepListener) -> bool:
    """Start a cell; False where that failed."""
    try:
        clear_empty_log(sweep.logs[cell.name])
        sweep.running.append(CellProcess(cell, sweep.out, replica, threads))
    except OSError as error:
        _fail(sweep, cell, f"it cannot be started: {error}", listener)
        return False
    listener.on_begin(sweep, cell, replica)
    sweep.write_index()
    return True


def _look_at(sweep: SweepRun, process: CellProcess, listener: SweepListener) -> bool:
    """Read on in a cell's log; True where its process has ended."""
    code = process.ended()  # first: so that all it wrote is read afterwards
    why = ""
    try:
        log = sweep.logs[process.cell.name].read_on()
    except UserError as error:
        why = str(error)
        process.kill()
        code = process.ended()
    if code is None:
        return False
    sweep.running.remove(process)
    if why or code or not log.ended:
        _fail(sweep, process.cell, why or f"exit code {code}: {last_lines(process.folder)}", listener)
    else:
        listener.on_finish(sweep, process.cell)
        sweep.write_index()
    return True


def _fail(sweep: SweepRun, cell: Cell, why: str, listener: SweepListener) -> None:
    sweep.failures[cell.name] = why
    listener.on_failure(sweep, cell, why)
    sweep.write_index()


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Hold a sweep's folder while the block runs.

    Raises:
        UserError: it cannot be made, or another sweep works there.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".sweep.lock").open("w")
    except OSError as error:
        raise UserError(f"Cannot use {out} for a sweep: {error.strerror}. Choose another --out.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"Another sweep works in {out}. Wait for it, or choose another --out.") from error
        yield
