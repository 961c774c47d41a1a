"""WebArena's tasks on sites of the user's, in the published split of WebArena and WebArena-Lite.

A task changes the sites when its solution does, which `webarena-verified` states of each; a set of sites that an
episode has changed is put back before the next one, where the user has said how. Where not, such tasks are left out or
come last, as the user prefers, and either is said at the start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from operators.errors import UserError
from train_adapters.adapter import SPLITS, AgentTask
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.judges import Judge
from train_adapters.webarena.logins import Logins
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.splits import published_splits
from train_adapters.webarena.stages import Ended, Opening, Stage

NAMES = {
    "shopping": "http://onestopmarket.com",
    "shopping_admin": "http://luma.com/admin",
    "reddit": "http://reddit.com",
    "gitlab": "http://gitlab.com",
    "map": "http://openstreetmap.org",
    "wikipedia": "http://wikipedia.org",
    "homepage": "http://homepage.com",
}
"""What the agent sees in place of the sites' addresses, after the benchmark's own."""
MUTATING = ("leave-out", "last", "reset")


class LiteSource:
    """The tasks.

    Args:
        every: WebArena's configurations.
        lite: WebArena-Lite's.
        verified: by id of WebArena's task, how `webarena-verified` words it.
        sets: of the sites.
        judge: of the episodes.
        mutating: what becomes of tasks that change a site: "leave-out", "last", or "reset", which needs a set for each
            browser and a way to put it back.

    Raises:
        UserError: the configurations are not the published ones, or no task can be played.
    """

    def __init__(
        self,
        every: Sequence[Mapping[str, Any]],
        lite: Sequence[Mapping[str, Any]],
        verified: Mapping[int, Mapping[str, Any]],
        sets: Sequence[SiteSet],
        judge: Judge,
        mutating: str,
    ) -> None:
        self._sets, self._judge, self._resets = sets, judge, mutating == "reset"
        there = set.intersection(*(set(one.urls) for one in sets))
        left_out = {"site": 0, "mutates": 0}
        self.tasks: dict[str, list[AgentTask]] = {split: [] for split in SPLITS}
        for split, configs in published_splits(every, lite).items():
            for config in configs:
                task = lite_task(split, config, verified, judge.reads_verified)
                if not set(task.payload["sites"]) <= there:
                    left_out["site"] += 1
                elif mutating == "leave-out" and task.payload["mutates"]:
                    left_out["mutates"] += 1
                else:
                    self.tasks[split].append(task)
            if mutating == "last":
                self.tasks[split].sort(key=lambda one: bool(one.payload["mutates"]))
        if not any(self.tasks.values()):
            raise UserError(f"No task can be played on the sites {', '.join(sorted(there))} alone. Name more of them.")
        self.advice = judge.advice
        self.notes = tuple(_notes(left_out, mutating))

    def stage(self, number: int) -> Stage:
        return LiteStage(self._sets[number % len(self._sets)], self._judge, number, self._resets)


def lite_task(
    split: str, config: Mapping[str, Any], verified: Mapping[int, Mapping[str, Any]], in_its_words: bool
) -> AgentTask:
    """The task of a configuration.

    Args:
        split: it is in.
        config: WebArena's or WebArena-Lite's.
        verified: by id of WebArena's task, how `webarena-verified` words it.
        in_its_words: whether that is what the agent is told.
    """
    old = int(config.get("old_task_id", config["task_id"]))
    other = verified.get(old)
    payload = dict(config) | {"webarena_id": old, "mutates": mutates(config, other)}
    if in_its_words and other is not None:
        payload |= {"intent": other["intent"], "start_url": other["start_urls"][0]}
    name = f"lite-{config['task_id']}" if "old_task_id" in config else f"webarena-{config['task_id']}"
    return AgentTask(name, split, payload, group=" + ".join(config["sites"]))


def mutates(config: Mapping[str, Any], verified: Mapping[str, Any] | None) -> bool:
    """Whether a task's solution changes a site: by `webarena-verified`, else by whether pages are checked for it."""
    if verified is None:
        return "program_html" in config["eval"]["eval_types"]
    return verified_kind(verified) == "mutate"


def verified_kind(verified: Mapping[str, Any]) -> str:
    """Whether `webarena-verified` takes a task for one to retrieve, to mutate or to navigate."""
    kinds = (check["expected"]["task_type"] for check in verified["eval"] if "task_type" in (check["expected"] or {}))
    return str(next(kinds))


def _notes(left_out: Mapping[str, int], mutating: str) -> list[str]:
    notes = []
    if left_out["site"]:
        notes.append(f"{left_out['site']} tasks are left out: they need sites that have no address.")
    if left_out["mutates"]:
        notes.append(
            f"{left_out['mutates']} tasks are left out: they change a site, and nothing puts it back "
            "(--mutating last plays them last, reset puts the sites back)."
        )
    if mutating == "last":
        notes.append("Tasks that change a site come last in each split, and nothing puts the sites back after them.")
    return notes


class LiteStage:
    """A set of sites behind a browser.

    Args:
        sites: the set; several stages may share one that nothing changes.
        judge: of the episodes.
        number: of the browser.
        resets: whether the set is this stage's own, and put back after every episode that has changed it.
    """

    def __init__(self, sites: SiteSet, judge: Judge, number: int, resets: bool) -> None:
        self._sites, self._judge, self._logins = sites, judge, Logins(sites)
        self._changed = True  # nobody knows what was there before
        self._traces = judge.traces(number)
        self.untouched = resets

    def prepare(self, task: AgentTask, browser: Browser) -> Opening:
        if self._changed and self.untouched:
            self._sites.reset()
            self._changed = False
            self._logins.forget()
        first = self._sites.fill(str(task.payload["start_url"])).split(" |AND| ")[0]
        state = self._logins.state(task.payload["sites"], browser)
        names = {url.rstrip("/"): NAMES[site] for site, url in longest_first(self._sites.urls)}
        trace = None if self._traces is None else str(self._traces)
        return Opening(first, storage_state=state, har=trace, names=names)

    def judge(self, task: AgentTask, ended: Ended, browser: Browser) -> float:
        return self._judge.score(task, ended, browser, self._sites, self._traces)

    def note_changes(self) -> None:
        self._changed = True

    def close(self) -> None:
        """The sites are the user's."""


def longest_first(urls: Mapping[str, str]) -> list[tuple[str, str]]:
    """Sites and their addresses, those within others before them."""
    return sorted(urls.items(), key=lambda one: -len(one[1]))


def read_configs(path: Path) -> list[dict[str, Any]]:
    """Configurations of tasks.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}. Make the environment anew: scripts/setup_web.sh") from error
    return found
