"""What the log and the checkpoints of the baseline already hold, so that a resumed arm does not do it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import Event

_STATE = "trainer_state.json"
"""What trl writes last into a checkpoint: one without it was cut short."""


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint of trl.

    Attributes:
        folder: that holds it.
        updates: made before it.
    """

    folder: Path
    updates: int


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """The last whole checkpoint there; None where there is none."""
    found = [
        Checkpoint(path.parent, int(path.parent.name.rpartition("-")[2]))
        for path in folder.glob(f"checkpoint-*/{_STATE}")
    ]
    return max(found, key=lambda one: one.updates, default=None)


class RecordedArm:
    """Steps and evaluations of this sitting and those before it.

    Attributes:
        evaluations: as events, without what is not theirs.
        inference_bytes: peak memory of the first evaluation; None where it was not measured.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._steps: dict[int, Event] = {}
        self.evaluations: list[dict[str, Any]] = []
        self.inference_bytes: int | None = None
        for event in events:
            self.take(event)

    @property
    def steps(self) -> list[Event]:
        """Those that stand, in their order."""
        return [self._steps[number] for number in sorted(self._steps)]

    def take(self, event: Event) -> None:
        """Learn of an event."""
        kind = event["event"]
        self.inference_bytes = event.get("inference_bytes", self.inference_bytes)
        if kind == "step":
            self._steps[event["step"]] = event
        elif kind == "go_on":
            self.go_on_from(event["step"])
        elif kind == "evaluation":
            left_out = ("event", "inference_bytes", "seconds")
            self.evaluations.append({name: value for name, value in event.items() if name not in left_out})

    def go_on_from(self, step: int) -> int:
        """Drop the steps from there on, which are done again.

        Returns:
            How many there were.
        """
        dropped = [number for number in self._steps if number >= step]
        for number in dropped:
            del self._steps[number]
        return len(dropped)

    def has_evaluation(self, split: str, at: int) -> bool:
        """Whether a split was evaluated after the given step, from 0; -1 before the first."""
        return any(one["split"] == split and one["generation"] == at for one in self.evaluations)
