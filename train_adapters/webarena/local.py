"""The local site set as a source of tasks: each browser has its own sites, and every episode untouched ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from operators.errors import UserError
from train_adapters.adapter import SPLITS, AgentTask
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.failures import InfraFailed
from train_adapters.webarena.sites import SiteDown, SiteSet
from train_adapters.webarena.sites.checks import Outcome, score
from train_adapters.webarena.sites.tasks import site_tasks
from train_adapters.webarena.stages import Ended, Opening, Stage


class LocalSource:
    """Tasks of the local sites.

    Args:
        difficulty: easy, medium or hard; empty for all.
        names: what the names of the tasks begin with, one of them; empty for all.

    Raises:
        UserError: there are no such tasks.
    """

    def __init__(self, difficulty: str = "", names: Sequence[str] = ()) -> None:
        self.tasks: Mapping[str, Sequence[AgentTask]] = {
            split: [
                _task(split, one)
                for one in site_tasks(split)
                if difficulty in ("", one["difficulty"]) and one["name"].startswith(tuple(names) or "")
            ]
            for split in SPLITS
        }
        if not any(self.tasks.values()):
            raise UserError(
                f"No local task has difficulty {difficulty or 'any'} and a name that begins with "
                f"{' or '.join(names) or 'anything'}. The difficulties are easy, medium and hard; names are such as "
                "shop-open-product or forum-open-board."
            )
        self.advice = ""
        self.notes: tuple[str, ...] = ()

    def stage(self, number: int) -> Stage:
        return LocalStage()


def _task(split: str, config: Mapping[str, object]) -> AgentTask:
    least = config["minimum_actions"]
    sites = config["sites"]
    assert isinstance(least, int)
    assert isinstance(sites, list)
    return AgentTask(str(config["name"]), split, dict(config), least, " + ".join(sites))


class LocalStage:
    """A site set of its own, started when it is first used."""

    untouched = True

    def __init__(self) -> None:
        self._sites: SiteSet | None = None

    @property
    def pid(self) -> int | None:
        """Of the sites' process."""
        return None if self._sites is None else self._sites.pid

    def prepare(self, task: AgentTask, browser: Browser) -> Opening:
        try:
            sites = self._ready()
            state = sites.storage_state(task.payload["sites"])
            return Opening(
                sites.fill(task.payload["start_url"]), storage_state=state, names={sites.url: "http://sites"}
            )
        except SiteDown as down:
            raise InfraFailed("site_down", str(down)) from down

    def judge(self, task: AgentTask, ended: Ended, browser: Browser) -> float:
        assert self._sites is not None
        sites = self._sites
        return score(task.payload, Outcome(ended.answer, ended.url, sites.page, sites.state()), sites.urls)

    def note_changes(self) -> None:
        """The next episode begins with a reset anyway."""

    def close(self) -> None:
        sites, self._sites = self._sites, None
        if sites is not None:
            sites.close()

    def _ready(self) -> SiteSet:
        if self._sites is None:
            self._sites = SiteSet.start()
        elif not self._sites.healthy():
            self._sites.restart()
        self._sites.reset()
        return self._sites
