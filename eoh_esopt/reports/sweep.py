"""The progress of a sweep: one view of all cells with the time that is left; plain lines where there is no terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from eoh_esopt.experiments.replicas import Replica
from eoh_esopt.experiments.sweep import Cell
from eoh_esopt.experiments.sweep_run import FAILURES_IN_A_ROW, SweepListener, SweepRun
from eoh_esopt.reports.objective import Scale

_LINE_EVERY_S = 60.0


class SweepLines(SweepListener):
    """A line when a cell begins, ends or fails, and one a minute; for logs and pipes.

    Args:
        console: to write to.
        at_once: cells that run at once.
    """

    def __init__(self, console: Console, at_once: int) -> None:
        self._console = console
        self._at_once = at_once
        self._began = self._spoke = time.monotonic()

    def say(self, message: str) -> None:
        """A line of news."""
        self._spoke = time.monotonic()
        minutes = (self._spoke - self._began) / 60
        self._console.print(f"[{minutes:6.1f} min] {message}", markup=False, highlight=False, soft_wrap=True)

    def on_start(self, sweep: SweepRun) -> None:
        self.say(f"{len(sweep.cells)} cells, {sweep.count('finished')} finished already, {self._at_once} at once")
        for name, why in sweep.failures.items():
            self.say(f"failed    {name}: {why}")

    def on_begin(self, sweep: SweepRun, cell: Cell, replica: Replica) -> None:
        verb = "begins" if sweep.logs[cell.name].start is None else "goes on"
        self.say(f"{verb:9} {cell.name} on {replica.name}")

    def on_progress(self, sweep: SweepRun) -> None:
        if time.monotonic() - self._spoke >= _LINE_EVERY_S:
            done = [f"{one.cell.name} {_share(sweep, one.cell)}" for one in sweep.running]
            self.say(f"{summary_line(sweep, self._at_once)}; at work: {', '.join(done)}")

    def on_finish(self, sweep: SweepRun, cell: Cell) -> None:
        log = sweep.logs[cell.name]
        self.say(
            f"finished  {cell.name} in {log.seconds:.0f} s, {_best(sweep, cell)}; {summary_line(sweep, self._at_once)}"
        )

    def on_failure(self, sweep: SweepRun, cell: Cell, why: str) -> None:
        self.say(f"failed    {cell.name}: {why}")

    def on_replica_lost(self, sweep: SweepRun, replica: Replica) -> None:
        self.say(f"{replica.name} gets no more cells: {FAILURES_IN_A_ROW} failed there in a row")


class SweepLive(SweepLines):
    """The same, with a panel at the foot of the terminal: a bar for all cells and one for each at work."""

    def __init__(self, console: Console, at_once: int) -> None:
        super().__init__(console, at_once)
        self._bars = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._tasks: dict[str, TaskID] = {}
        self._live = Live(console=console, refresh_per_second=4)

    def on_start(self, sweep: SweepRun) -> None:
        super().on_start(sweep)
        self._live.start()
        self.on_progress(sweep)

    def on_progress(self, sweep: SweepRun) -> None:
        at_work = {one.cell.name: one.cell for one in sweep.running}
        for name in self._tasks.keys() - at_work.keys():
            self._bars.remove_task(self._tasks.pop(name))
        for name, cell in at_work.items():
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=cell.config.budget)
            self._bars.update(self._tasks[name], completed=sweep.logs[name].candidates)
        table = Table.grid()
        table.add_row(Text(summary_line(sweep, self._at_once)))
        table.add_row(self._bars)
        self._live.update(table)

    def stop(self) -> None:
        """Leave the last picture on the screen."""
        self._live.stop()


@contextmanager
def watch_sweep(at_once: int) -> Iterator[SweepLines]:
    """A listener that suits where the output goes; the display is closed whatever happens."""
    console = Console()
    if not console.is_terminal or os.environ.get("CI"):
        yield SweepLines(console, at_once)
        return
    listener = SweepLive(console, at_once)
    try:
        yield listener
    finally:
        listener.stop()


def summary_line(sweep: SweepRun, at_once: int) -> str:
    """How far all cells are, and the time that is left."""
    failed = sweep.count("failed")
    left = sweep.seconds_left(at_once)
    return (
        f"{sweep.count('finished')} of {len(sweep.cells)} cells finished"
        + (f", {failed} failed" if failed else "")
        + (f", about {_duration(left)} left" if left else "")
    )


def cells_table(sweep: SweepRun) -> Table:
    """All cells and the state of each."""
    table = Table(box=None, pad_edge=False)
    for name in ("cell", "method", "budget", "updates", "state"):
        table.add_column(name, justify="right" if name in ("budget", "updates") else "left")
    for cell in sweep.cells:
        updates = planned_updates(cell)
        table.add_row(cell.name, cell.config.method, str(cell.config.budget), str(updates), sweep.state(cell))
    return table


def planned_updates(cell: Cell) -> int:
    """Updates that the budget holds, those that may be skipped included."""
    config, left, updates = cell.config, cell.config.budget, 0
    while config.learns and left > 0:
        for name, count in config.plan:
            updates += left > 0 and name in ("i1", "m1", "m2")
            left -= count
    return updates


def _share(sweep: SweepRun, cell: Cell) -> str:
    return f"{sweep.logs[cell.name].candidates}/{cell.config.budget}"


def _best(sweep: SweepRun, cell: Cell) -> str:
    log = sweep.logs[cell.name]
    if log.best is None or log.start is None:
        return "nothing valid"
    return f"best {Scale.of(log.start).show(log.best)}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
