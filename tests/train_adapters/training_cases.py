"""A tiny environment, and a model that plays it by a script: what the tests of the trainer share. No weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import EVENTS, Event, read_events
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from train_adapters.adapter import AgentFailed, AgentTask, Episode, Limits
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.run import work
from train_adapters.tasks import Tasks


class CountDown:
    """Add digits until the target is reached; overshooting spoils the episode."""

    def __init__(self, target: int, tell: Callable[[str], None]) -> None:
        self.left = target
        self._tell = tell

    async def reset(self) -> None:
        self._tell("reset")

    def observe(self) -> int:
        return self.left

    async def step(self, action: int | None) -> None:
        self._tell("step")
        self.left -= action or 0
        if self.left < 0:
            raise AgentFailed("overshot")

    @property
    def done(self) -> bool:
        return self.left == 0

    @property
    def reward(self) -> float:
        return 1.0 if self.done else -abs(self.left) / 10

    async def close(self) -> None:
        self._tell("close")


@dataclass
class CountAdapter:
    """Tasks that differ by their target.

    Attributes:
        sizes: tasks of each split.
        fails: told the task, the moment ("reset", "step", "close", "score") and how often it came; raises to fail.
        seen: how often each moment of each task came.
    """

    sizes: dict[str, int] = field(default_factory=lambda: {"train": 5, "val": 2, "test": 2})
    fails: Callable[[AgentTask, str, int], None] = lambda task, moment, count: None
    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    turns: int = 4
    name: str = "count"

    def tasks(self, split: str) -> list[AgentTask]:
        return [AgentTask(f"{split}-{i}", split, {"target": 3 + i}, 1) for i in range(self.sizes.get(split, 0))]

    def limits(self, task: AgentTask) -> Limits:
        return Limits(self.turns, 8)

    def environment(self, task: AgentTask) -> CountDown:
        return CountDown(task.payload["target"], lambda moment: self._note(task, moment))

    def prompt(self, task: AgentTask, observation: int) -> str:
        return f"{task.id}: {observation} left"

    def parse(self, reply: str) -> int | None:
        return int(reply) if reply.isascii() and reply.isdigit() and len(reply) < 9 else None

    async def score(self, task: AgentTask, environment: Any) -> float:
        self._note(task, "score")
        return float(environment.reward)

    def _note(self, task: AgentTask, moment: str) -> None:
        key = task.id, moment
        self.seen[key] = self.seen.get(key, 0) + 1
        self.fails(task, moment, self.seen[key])


def drawn(request: Request, number: int) -> str:
    """Actions and nonsense; which one depends on the prompt, the seed, the direction and the weights."""
    return ("", "no number", "1", "2", "3", "4")[number % 6]


class OneDirection(ScriptedModel):
    """A scripted model that serves one direction a batch, as real ones do that move all their weights."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        return [list(group) for _, group in groupby(range(len(requests)), lambda i: requests[i].direction)]


def settings(**changes: Any) -> TrainConfig:
    """A training of three generations."""
    small: dict[str, Any] = {"generations": 3, "directions": 4, "batch": 2, "samples": 2, "seed": 1}
    small |= {"evaluate_every": 2, "final_repeats": 2}
    return TrainConfig("count", "scripted", **{**small, **changes}).resolved()


def tasks_of(adapter: CountAdapter) -> Tasks:
    return {split: tuple(adapter.tasks(split)) for split in ("train", "val", "test")}


def train(
    folder: Path,
    config: TrainConfig | None = None,
    model: ScriptedModel | None = None,
    adapter: CountAdapter | None = None,
    listener: TrainListener | None = None,
) -> dict[str, Any]:
    """Begin the training in the folder, or go on with it; its weights are `model`'s afterwards."""
    adapter = CountAdapter() if adapter is None else adapter
    folder.mkdir(exist_ok=True)
    return work(
        settings() if config is None else config,
        folder,
        ScriptedModel(drawn) if model is None else model,
        adapter,
        tasks_of(adapter),
        TrainListener() if listener is None else listener,
        lambda text: None,
    )


_VARYING = ("time", "timings", "seconds", "peak_bytes", "inference_bytes", "memory")


def canonical(events: Sequence[Event]) -> list[Event]:
    """The events without what differs from one sitting to the next."""
    return [{name: value for name, value in event.items() if name not in _VARYING} for event in events]


def of_kind(folder: Path, kind: str) -> list[Event]:
    return [event for event in read_events(folder) if event["event"] == kind]


def truncate_log(source: Path, folder: Path, lines: int, *, torn: bool = False) -> None:
    """A new folder whose log has the first lines of another's, and half of the next where it is torn."""
    folder.mkdir()
    whole = (source / EVENTS).read_text().splitlines(keepends=True)
    rest = "".join(whole[lines : lines + 1])
    (folder / EVENTS).write_text("".join(whole[:lines]) + rest[: len(rest) // 2 if torn else 0])


def digest(text: str) -> int:
    """A number that depends on all of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


def episodes_of(folder: Path, place: str) -> list[Episode]:
    """The episodes that the log holds of a place, in its order."""
    from train_adapters.adapter import Ending

    return [
        Episode(**{**one, "ending": Ending(one["ending"])})
        for event in of_kind(folder, "episodes")
        if event["place"] == place
        for one in event["episodes"]
    ]
