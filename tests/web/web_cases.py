"""What the tests play: a small training on local tasks, and WebArena's tasks on sites that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from train_adapters.adapter import SPLITS, AgentTask
from train_adapters.config import TrainConfig
from train_adapters.webarena.adapter import WebAdapter, WebSettings, make_adapter
from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.failures import Breaker
from train_adapters.webarena.fleet import Fleet, Seat
from train_adapters.webarena.installed import BROWSERS, chromium, python_of
from train_adapters.webarena.local import LocalSource, LocalStage

_KINDS = ("shop-open-category", "forum-open-board", "tracker-open-project")


class OpeningTasks:
    """The local tasks to open something."""

    advice = ""
    notes = ()

    def __init__(self) -> None:
        chosen = [task for task in LocalSource().tasks["train"] if task.id.startswith(_KINDS)]
        self.tasks: Mapping[str, Sequence[AgentTask]] = {"train": chosen}

    def stage(self, number: int) -> LocalStage:
        return LocalStage()


def adapter(browsers: int = 2) -> WebAdapter:
    """Those tasks, in some browsers."""
    source, options = OpeningTasks(), BrowserOptions(chromium())
    seats = [Seat(Browser(python_of(BROWSERS), options), source.stage(number)) for number in range(browsers)]
    return WebAdapter(source, Fleet(seats, Breaker()), WebSettings(turns=4))


def config() -> TrainConfig:
    """Two generations of two directions that play two tasks each."""
    return TrainConfig(
        "webarena", "scripted", generations=2, directions=2, batch=2, seed=1, evaluate_every=0
    ).resolved()


def resetting_lite(folder: Path, sites: Sequence[str], navigation_seconds: float = 30.0) -> WebAdapter:
    """WebArena on made-up sites that are put back, judged by its own checks, in one browser.

    Args:
        folder: for the file of sites.
        sites: lines of that file.
        navigation_seconds: limit of a page.
    """
    (folder / "sites.toml").write_text("\n".join(sites))
    return make_adapter(
        "webarena-lite",
        sites=str(folder / "sites.toml"),
        mutating="reset",
        judge="benchmark",
        judge_model="nobody",
        browsers=1,
        view="axtree",
        navigation_seconds=navigation_seconds,
    )


def task_of(adapter: WebAdapter, number: int) -> AgentTask:
    """The task that WebArena knows by a number."""
    tasks = (task for split in SPLITS for task in adapter.tasks(split))
    return next(task for task in tasks if task.payload["webarena_id"] == number)
