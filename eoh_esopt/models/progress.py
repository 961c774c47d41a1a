"""How fetching a model tells what it is doing: a class of callbacks that do nothing, and two that print.

`Progress` is what the fetching code calls; `LineProgress` writes plain lines (logs, CI), `LiveProgress` draws a bar.
`console_progress` picks one of them. Not here: any decision about what is fetched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Callbacks, all silent; override those wanted."""

    def note(self, message: str) -> None:
        """One fact worth a line."""

    def step(self, message: str) -> None:
        """A step of unknown length begins; the one before is over."""

    def download(self, done: int, total: int) -> None:
        """`done` of `total` bytes have been downloaded."""


class LineProgress(Progress):
    """One line per note and step, none for bytes."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream

    def note(self, message: str) -> None:
        print(message, file=self._stream, flush=True)

    def step(self, message: str) -> None:
        self.note(f"{message} ...")


class LiveProgress(Progress):
    """A live line at the foot of the terminal: a pulse for steps, a bar for bytes."""

    def __init__(self, live: RichProgress) -> None:
        self._live = live
        self._task: TaskID | None = None

    def note(self, message: str) -> None:
        self._live.console.print(message, markup=False, highlight=False)

    def step(self, message: str) -> None:
        if self._task is not None:
            self._live.remove_task(self._task)
        self._task = self._live.add_task(message, total=None, amount="")

    def download(self, done: int, total: int) -> None:
        if self._task is not None:
            amount = f"{min(done, total) / 1e6:.0f} of {total / 1e6:.0f} MB"
            self._live.update(self._task, completed=done, total=total, amount=amount)


@contextmanager
def console_progress(console: Console | None = None) -> Iterator[Progress]:
    """A live display on a terminal; plain lines on standard error elsewhere and where CI is set."""
    screen = Console(stderr=True) if console is None else console
    if not screen.is_terminal or os.environ.get("CI"):
        yield LineProgress()
        return
    text, amount = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[amount]}")
    columns = (SpinnerColumn(), text, BarColumn(), amount, TimeElapsedColumn())
    with RichProgress(*columns, console=screen, transient=True) as live:
        yield LiveProgress(live)
