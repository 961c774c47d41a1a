"""A training in a process of its own that kills itself, without mercy, at a given moment.

Arguments: the folder, and the moment: one of `MOMENTS`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from training_cases import OneDirection, drawn, train

from eoh_esopt.engine.events import HISTORY, EventLog
from eoh_esopt.models.protocol import Reply, Request
from operators.records import Update

MOMENTS = ("rollouts", "before the update", "after the update", "checkpoint", "log")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Doomed(OneDirection):
    """Dies while it plays the second generation, or around its second update."""

    def __init__(self, moment: str) -> None:
        super().__init__(drawn)
        self._moment = moment
        self._asked = 0

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self._asked += bool(self.updates)
        if self._moment == "rollouts" and self._asked == 6:
            die()
        return super().generate(requests)

    def apply(self, update: Update) -> None:
        if self._moment == "before the update" and self.updates:
            die()
        super().apply(update)
        if self._moment == "after the update" and len(self.updates) == 2:
            die()


def die_writing(moment: str) -> None:
    """Die between writing the second checkpoint and putting it in its place, or within a line of the log."""
    replace, append = Path.replace, EventLog.append
    written: list[Path] = []

    def dying_replace(self: Path, target: Any) -> Path:
        written.extend([self] if Path(target).name == HISTORY else [])
        if moment == "checkpoint" and len(written) == 2:
            die()
        return replace(self, target)

    def dying_append(self: EventLog, kind: str, **fields: Any) -> Any:
        if moment == "log" and kind == "episodes" and fields["place"] == "train/1":
            self._stream.write(b'{"event": "episodes", "pla')
            die()
        return append(self, kind, **fields)

    Path.replace = dying_replace  # type: ignore[method-assign,assignment]
    EventLog.append = dying_append  # type: ignore[method-assign]


if __name__ == "__main__":
    die_writing(sys.argv[2])
    train(Path(sys.argv[1]), model=Doomed(sys.argv[2]))
