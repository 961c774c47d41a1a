"""How far the run of a cell is, by what its event log holds; only what is new is read each time."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from eoh_esopt.engine.config import MOVABLE, RunConfig
from eoh_esopt.engine.events import EVENTS, Event
from operators.errors import UserError

_HEADS = tuple(f'{{"event": "{kind}"'.encode() for kind in ("start", "batch", "end"))
"""How the lines begin that are looked at. Most of a log is replies and outcomes."""


class CellLog:
    """Follows the log of one run.

    Args:
        folder: the run's folder, which need not be there yet.

    Attributes:
        start: the first event; None before the run has begun.
        candidates: of the search that were written and evaluated so far.
        seconds: of work so far.
        best: best objective so far, lower is better; None where nothing was valid yet.
        ended: whether the run is finished.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start: Event | None = None
        self.candidates = 0
        self.seconds = 0.0
        self.best: float | None = None
        self.ended = False
        self._read = 0

    def read_on(self) -> CellLog:
        """Read what the log gained since the last time.

        Raises:
            UserError: the log is damaged or cannot be read.
        """
        path = self.folder / EVENTS
        try:
            with path.open("rb") as stream:
                stream.seek(self._read)
                new = stream.read()
        except FileNotFoundError:
            return self
        except OSError as error:
            raise UserError(
                f"Cannot read {path}: {error.strerror}. Mend it, or move the cell's folder away."
            ) from error
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        try:
            for line in whole.splitlines():
                if line.startswith(_HEADS):
                    self._take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged: {error!r}. Move the cell's folder away to run it again.") from error
        return self

    def _take(self, event: Event) -> None:
        if event["event"] == "start":
            self.start = event
        elif event["event"] == "end":
            self.ended, self.seconds = True, event["seconds"]
        else:
            self.candidates, self.seconds = event["ledger"]["candidates"], event["seconds"]
            self.best = event["best"]

    @property
    def holds_nothing(self) -> bool:
        """Whether a log is there in which no event is whole: a kill came before the first one was written."""
        return self._read == 0 and (self.folder / EVENTS).exists()

    def check_settings(self, wanted: RunConfig) -> None:
        """Refuse to mix runs of different settings.

        Args:
            wanted: the settings of the cell now; what depends on the model need not be filled in.

        Raises:
            UserError: the run began with others.
        """
        if self.start is None:
            return
        defaults = {one.name: one.default for one in fields(RunConfig)}  # of settings that older runs did not have
        began: dict[str, Any] = {**defaults, **self.start["config"]}
        now = asdict(wanted.resolved(self.start["model"].get("parameters")))
        for name in sorted(now.keys() - MOVABLE):
            if began[name] != now[name]:
                raise UserError(
                    f"The cell {self.folder} began with {name} {began[name]!r}, and the sweep has {now[name]!r} now. "
                    "Put it back, or choose another --out."
                )
