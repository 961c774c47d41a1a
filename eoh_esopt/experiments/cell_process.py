"""A cell at work: a process of its own, `python -m eoh_esopt run`, that ends when the sweep does."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

from eoh_esopt.engine.config import MOVABLE, RunConfig
from eoh_esopt.engine.events import EVENTS
from eoh_esopt.experiments.cell_log import CellLog
from eoh_esopt.experiments.replicas import Replica, with_threads
from eoh_esopt.experiments.sweep import Cell
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.sandbox import syscalls

LOG = "cell.log"
LAST_LINES = 6
"""Of a cell's output, told when it fails."""

PATIENCE_S = 20.0
"""For a cell to stop when it is asked to."""


class CellProcess:
    """One cell at work on one replica.

    Args:
        cell: what to run; it goes on where its log ends.
        out: the sweep's folder.
        replica: where to run it.
        threads: its share of the cores.

    Raises:
        OSError: the cell's folder cannot be made, or the process not be started.
    """

    def __init__(self, cell: Cell, out: Path, replica: Replica, threads: int) -> None:
        self.cell = cell
        self.replica = replica
        self.folder = out / cell.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._command = command_of(cell, self.folder, replica, threads)
        with (self.folder / LOG).open("ab") as log:
            log.write(f"$ {shlex.join(self._command)}\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**with_threads(replica.environment, threads), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for the sweep, which stops its cells itself
                preexec_fn=_die_with(os.getpid()),
            )

    def ended(self) -> int | None:
        """The exit code of the process; None while it works."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Ask it to stop, as Ctrl-C does."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Stop it at once."""
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> bool:
        """Whether it ends within that time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None


def stop_all(running: Sequence[CellProcess]) -> None:
    """Ask cells to stop, and stop those that do not."""
    for one in running:
        one.interrupt()
    deadline = time.monotonic() + PATIENCE_S
    try:
        for one in running:
            one.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for one in running:
            one.kill()


def command_of(cell: Cell, folder: Path, replica: Replica, threads: int) -> list[str]:
    """The command line of a cell: a new run, or the one that its folder holds taken up again."""
    program = [sys.executable, "-m", "eoh_esopt", "run"]
    ending = ["--workers", str(threads)]
    if (folder / EVENTS).exists():
        moved = {name: value for name, value in replica.settings.items() if name in MOVABLE}
        return [*program, "--resume", str(folder), *_options(moved), *ending]
    config = replace(cell.config, **replica.settings)
    return [*program, cell.task, *_options(settings_given(config)), "--out", str(folder), *ending]


def settings_given(config: RunConfig) -> dict[str, object]:
    """The settings that are not at their defaults, by the names of the options; the sampling's among the others."""
    plain = [one for one in fields(config) if one.name not in ("problem", "sampling")]
    found = {one.name: (getattr(config, one.name), one.default) for one in plain}
    found |= {one.name: (getattr(config.sampling, one.name), one.default) for one in fields(Sampling)}
    return {name: value for name, (value, default) in found.items() if value != default}


def _options(settings: dict[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        yield option if value is True else f"{option}={value}"


def clear_empty_log(log: CellLog) -> None:
    """Take away a log in which nothing is whole, so that the cell can begin anew."""
    if log.holds_nothing:
        (log.folder / EVENTS).unlink()


def last_lines(folder: Path) -> str:
    """The end of a cell's output: its last error where it has one, else its last lines."""
    try:
        with (folder / LOG).open(encoding="utf-8", errors="replace") as stream:
            lines = deque((line.rstrip() for line in stream if line.strip()), LAST_LINES)
    except OSError as error:
        return f"its output cannot be read: {error.strerror}"
    if lines and lines[-1].startswith("Error: "):
        return lines[-1].removeprefix("Error: ")
    return "\n".join(lines)


def _die_with(parent: int) -> Callable[[], None]:
    """What the new process does first: have the kernel end it when the sweep is killed, which only Linux can."""

    def before() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a sweep in the background of a script ignores it
        if syscalls.LINUX:
            syscalls.prctl("PR_SET_PDEATHSIG", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return before
