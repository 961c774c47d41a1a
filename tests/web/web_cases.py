"""A small training on local tasks that a scripted model can solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from train_adapters.adapter import AgentTask
from train_adapters.config import TrainConfig
from train_adapters.webarena.adapter import WebAdapter, WebSettings
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
