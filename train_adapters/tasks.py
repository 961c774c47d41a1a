"""The tasks of a training by split: read, checked, and identified by their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import Event
from operators.errors import UserError
from train_adapters.adapter import SPLITS, Adapter, AgentTask
from train_adapters.registry import make_adapter

Tasks = Mapping[str, Sequence[AgentTask]]
"""Of every split of `SPLITS`, its tasks in their order."""


def prepared(name: str, settings: Mapping[str, Any]) -> tuple[Adapter, Tasks]:
    """The adapter and its tasks, checked.

    Args:
        name: of a shipped adapter, or the path of the file that defines one.
        settings: what it is made with.

    Raises:
        UserError: there is no such adapter, or its data cannot be read or used.
    """
    adapter = make_adapter(name, settings)
    tasks = {split: tuple(adapter.tasks(split)) for split in SPLITS}
    for split, found in tasks.items():
        _check_split(adapter, split, found)
    return adapter, tasks


def _check_split(adapter: Adapter, split: str, tasks: Sequence[AgentTask]) -> None:
    seen: set[str] = set()
    for task in tasks:
        limits = adapter.limits(task)
        if task.id in seen:
            raise UserError(f"{adapter.name} has two tasks {task.id!r} in its split {split}. Give each its own id.")
        if limits.turns < 1 or limits.new_tokens < 1:
            raise UserError(f"{adapter.name} allows task {task.id!r} no turn or no token. Give both at least 1.")
        try:
            json.dumps(task.payload)
        except (TypeError, ValueError) as error:
            raise UserError(f"{adapter.name}: the payload of task {task.id!r} is no JSON: {error}.") from error
        seen.add(task.id)


def check_batch(batch: int, adapter: Adapter, tasks: Tasks) -> None:
    """Refuse batches in which a task would come twice.

    Raises:
        UserError: there are too few tasks to learn from.
    """
    if batch > len(tasks["train"]):
        raise UserError(
            f"A batch of {batch} is more than the {len(tasks['train'])} training tasks of {adapter.name}. "
            "Lower --batch."
        )


def longest_reply(adapter: Adapter, tasks: Tasks) -> int:
    """Most tokens of a reply, over all tasks."""
    return max(adapter.limits(task).new_tokens for split in tasks.values() for task in split)


def digests(tasks: Tasks) -> dict[str, Any]:
    """What identifies the data: by split, how many tasks there are and the sha256 of their ids and payloads."""
    found = {}
    for split, of_split in tasks.items():
        text = json.dumps([[task.id, task.payload] for task in of_split], sort_keys=True)
        found[split] = {"tasks": len(of_split), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return found


def check_tasks(earlier: Sequence[Event], tasks: Tasks, out: Path) -> None:
    """Refuse data that are not those a training began with.

    Raises:
        UserError: it names the split.
    """
    if not earlier:
        return
    now = digests(tasks)
    for split, began in earlier[0]["dataset"].items():
        if now[split] != began:
            raise UserError(
                f"The dataset has changed since the training in {out} began: its split {split} had {_told(began)}, and "
                f"has {_told(now[split])} now. Bring it back, or begin a new training with --out."
            )


def _told(digest: Mapping[str, Any]) -> str:
    return f"{digest['tasks']} tasks with hash {digest['sha256'][:12]}"
