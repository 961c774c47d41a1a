"""MiniWoB++ as a source of tasks: small pages that draw a task from a seed, show it, and judge by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from operators.errors import UserError
from train_adapters.adapter import AgentTask
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.stages import Ended, Opening, Stage

NAMES = (
    "click-button", "click-button-sequence", "click-checkboxes", "click-checkboxes-large", "click-checkboxes-soft",
    "click-checkboxes-transfer", "click-collapsible", "click-collapsible-2", "click-dialog", "click-dialog-2",
    "click-link", "click-menu", "click-option", "click-scroll-list", "click-tab", "click-tab-2", "click-test",
    "click-test-2", "click-widget", "choose-list", "email-inbox", "email-inbox-delete", "email-inbox-forward",
    "email-inbox-important", "email-inbox-noscroll", "email-inbox-reply", "enter-date", "enter-password",
    "enter-text", "enter-text-dynamic", "enter-time", "focus-text", "focus-text-2", "form-sequence-2", "login-user",
    "login-user-popup", "multi-layouts", "multi-orderings", "navigate-tree", "read-table", "search-engine",
    "simple-algebra", "simple-arithmetic", "social-media", "social-media-all", "use-autocomplete",
)  # fmt: skip
"""Those that text and the actions of `actions.py` are enough for; the others need a mouse that draws, or eyes."""

_FIRST_SEEDS = {"train": 0, "val": 1_000_000, "test": 2_000_000}
"""No seed is in two splits."""


class MiniwobSource:
    """Tasks of MiniWoB++.

    Args:
        folder: of its pages.
        names: of the kinds of tasks; empty for `NAMES`.
        seeds: how many tasks of each kind, by split.

    Raises:
        UserError: there is no such page.
    """

    def __init__(self, folder: Path, names: Sequence[str], seeds: Mapping[str, int]) -> None:
        self._folder = folder
        chosen = tuple(names) or NAMES
        for name in chosen:
            if not (folder / f"{name}.html").exists():
                raise UserError(f"MiniWoB++ has no task {name!r}. Choose from: {', '.join(NAMES)}.")
        self.tasks: Mapping[str, Sequence[AgentTask]] = {
            split: [_task(split, name, first + one) for one in range(seeds[split]) for name in chosen]
            for split, first in _FIRST_SEEDS.items()
        }
        self.advice = ""
        self.notes: tuple[str, ...] = ()

    def stage(self, number: int) -> Stage:
        return MiniwobStage(self._folder)


def _task(split: str, name: str, seed: int) -> AgentTask:
    payload = {"name": name, "seed": seed, "intent": "", "sites": ["miniwob"]}
    return AgentTask(f"{name}-{seed}", split, payload, group="miniwob")


class MiniwobStage:
    """Files that nothing changes."""

    untouched = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, task: AgentTask, browser: Browser) -> Opening:
        page = self._folder / f"{task.payload['name']}.html"
        return Opening(page.as_uri(), seed=task.payload["seed"], miniwob=True, names={self._folder.as_uri(): "miniwob"})

    def judge(self, task: AgentTask, ended: Ended, browser: Browser) -> float:
        return ended.reward

    def note_changes(self) -> None:
        """There is nothing to change."""

    def close(self) -> None:
        """There is nothing to let go of."""
