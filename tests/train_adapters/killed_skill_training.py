"""A training with a skill, in a process of its own that kills itself at a given moment of the first revision.

Arguments: the folder, and the moment: one of `SKILL_MOMENTS`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skill_cases import asks_for, co_evolving, scripted, shows_skill
from training_cases import OneDirection, train

from eoh_esopt.engine.events import EventLog
from eoh_esopt.models.protocol import Reply, Request

SKILL_MOMENTS = ("trajectories", "lessons", "version", "check")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Doomed(OneDirection):
    """Dies while it is asked for lessons, or in the middle of a check."""

    def __init__(self, moment: str) -> None:
        super().__init__(scripted())
        self._moment = moment

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        checked = requests[0].direction is None and shows_skill(requests[0])
        if self._moment == asks_for(requests[0]) or (self._moment == "check" and checked):
            die()
        return super().generate(requests)


def die_between(moment: str) -> None:
    """Die after a file was written, before the log says so."""
    append = EventLog.append
    due = {
        "trajectories": lambda kind, fields: kind == "episodes" and fields["place"] == "train/1",
        "version": lambda kind, fields: kind == "skill_proposal",
    }

    def dying_append(self: EventLog, kind: str, **fields: Any) -> Any:
        if moment in due and due[moment](kind, fields):
            self._stream.write(b'{"event": "')
            die()
        return append(self, kind, **fields)

    EventLog.append = dying_append  # type: ignore[method-assign]


if __name__ == "__main__":
    die_between(sys.argv[2])
    train(Path(sys.argv[1]), co_evolving(), Doomed(sys.argv[2]))
