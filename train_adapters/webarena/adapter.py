"""Web tasks as the trainer sees them: a source of tasks, browsers to play them in, and the parts of an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eoh_esopt.models.protocol import Prompt
from operators.errors import UserError
from train_adapters.adapter import AgentTask, Environment, Limits
from train_adapters.webarena.actions import Action, parse_action
from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.environment import Observation, WebEnvironment
from train_adapters.webarena.failures import Breaker
from train_adapters.webarena.fleet import Fleet, Seat
from train_adapters.webarena.installed import BROWSERS, SCORER, chromium, data_of, python_of
from train_adapters.webarena.judges import BenchmarkJudge, Judge, VerifiedJudge
from train_adapters.webarena.lite import MUTATING, LiteSource, read_configs, verified_kind
from train_adapters.webarena.local import LocalSource
from train_adapters.webarena.miniwob import MiniwobSource
from train_adapters.webarena.prompt import prompt
from train_adapters.webarena.site_sets import read_site_sets
from train_adapters.webarena.stages import Source

SOURCES = ("local", "miniwob", "webarena-lite")
VIEWS = ("html", "axtree")
_PATIENCE = 15.0
"""Seconds that one browser waits for another: pages take longer than commands do."""


@dataclass(frozen=True)
class WebSettings:
    """How episodes are played.

    Attributes:
        view: "html" or "axtree".
        page_chars: as much of a page is shown.
        turns: limit of an episode.
        new_tokens: limit of a reply, in tokens.
        retries: how often the beginning of an episode is tried again.
        pause: seconds before the first of those tries.
        seconds: limit of an episode.
    """

    view: str = "html"
    page_chars: int = 16_000
    turns: int = 30
    new_tokens: int = 2_048
    retries: int = 2
    pause: float = 1.0
    seconds: float = 1_200.0


class WebAdapter:
    """The adapter over a source of tasks.

    Args:
        source: of the tasks.
        fleet: browsers, each with a stage of the source.
        settings: how episodes are played.
    """

    def __init__(self, source: Source, fleet: Fleet, settings: WebSettings) -> None:
        self._source, self._fleet, self._settings = source, fleet, settings

    @property
    def name(self) -> str:
        return "webarena"

    @property
    def side_by_side(self) -> int:
        """Most episodes at once: one a browser."""
        return len(self._fleet.seats)

    @property
    def patience(self) -> float:
        """Seconds that others wait for a slow step, see `train_adapters.pace`."""
        return _PATIENCE

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for people at the start."""
        return self._source.notes

    def tasks(self, split: str) -> Sequence[AgentTask]:
        return self._source.tasks.get(split, [])

    def limits(self, task: AgentTask) -> Limits:
        return Limits(self._settings.turns, self._settings.new_tokens)

    def environment(self, task: AgentTask) -> Environment:
        settings = self._settings
        return WebEnvironment(task, self._fleet, settings.retries, settings.pause, settings.seconds)

    def prompt(self, task: AgentTask, observation: Observation) -> Prompt:
        settings = self._settings
        return prompt(observation, settings.view, settings.page_chars, self._source.advice)

    def parse(self, reply: str) -> Action | None:
        return parse_action(reply)

    async def score(self, task: AgentTask, environment: Environment) -> float:
        assert isinstance(environment, WebEnvironment)
        return await environment.judged()

    def close(self) -> None:
        """End the browsers and the sites; they end with the program otherwise."""
        self._fleet.close()


def make_adapter(
    source: str = "local",
    browsers: int = 2,
    view: str = "html",
    page_chars: int = 16_000,
    turns: int = 30,
    new_tokens: int = 2_048,
    difficulty: str = "",
    names: str = "",
    train: int = 4,
    val: int = 1,
    test: int = 1,
    sites: str = "",
    mutating: str = "leave-out",
    judge: str = "verified",
    judge_model: str = "",
    judge_url: str = "",
    navigation_seconds: float = 30.0,
    episode_seconds: float = 1_200.0,
) -> WebAdapter:
    """The adapter from its settings.

    Args:
        source: `local` (the site set that is shipped), `miniwob` or `webarena-lite`.
        browsers: how many play at once; each takes about 0.4 GB.
        view: what the agent sees of a page: `html`, simplified with ids, or `axtree`, the accessibility tree.
        page_chars: as much of a page is shown, around the element acted on last.
        turns: limit of an episode.
        new_tokens: limit of a reply, in tokens.
        difficulty: of the local tasks: easy, medium or hard; all without it.
        names: of MiniWoB++'s tasks, or beginnings of names of local ones, separated by commas; all without it.
        train: MiniWoB++: tasks of each kind to learn from.
        val: the same to evaluate on during the training.
        test: the same to evaluate on at the end.
        sites: webarena-lite: file with the addresses of the sites, see `site_sets.py`.
        mutating: webarena-lite: tasks that change a site are left out (`leave-out`), played `last`, or played on sets
            of sites that are put back (`reset`).
        judge: webarena-lite: `verified` (deterministic) or `benchmark` (with a language model for free answers).
        judge_model: webarena-lite: name of that language model.
        judge_url: webarena-lite: address of its endpoint; OpenAI's own without it.
        navigation_seconds: limit of a page.
        episode_seconds: limit of an episode, the model's time included; what takes longer is left out.

    Raises:
        UserError: a setting cannot be used, or what the browsers need is not installed.
    """
    if view not in VIEWS:
        raise UserError(f"Unknown view {view!r}. Choose html or axtree.")
    counts = {"browsers": browsers, "page_chars": page_chars, "turns": turns, "new_tokens": new_tokens}
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise UserError(f"{name} must be a whole number of at least 1, not {value!r}.")
    for name, limit in {"navigation_seconds": navigation_seconds, "episode_seconds": episode_seconds}.items():
        if type(limit) not in (int, float) or not 0 < limit < math.inf:
            raise UserError(f"{name} must be a number above 0, not {limit!r}.")
    chosen = [one.strip() for one in names.split(",") if one.strip()]
    found: Source
    if source == "local":
        found = LocalSource(difficulty, chosen)
    elif source == "miniwob":
        found = MiniwobSource(
            data_of(BROWSERS, "miniwob/html/miniwob"), chosen, {"train": train, "val": val, "test": test}
        )
    elif source == "webarena-lite":
        found = _lite(sites, browsers, mutating, judge, judge_model, judge_url)
    else:
        raise UserError(f"Unknown source {source!r}. Choose one of {', '.join(SOURCES)}.")
    python, options = python_of(BROWSERS), BrowserOptions(chromium(), view, navigation_ms=1000 * navigation_seconds)
    fleet = Fleet([Seat(Browser(python, options), found.stage(number)) for number in range(browsers)], Breaker())
    return WebAdapter(found, fleet, WebSettings(view, page_chars, turns, new_tokens, seconds=episode_seconds))


def _lite(sites: str, browsers: int, mutating: str, judge: str, model: str, url: str) -> LiteSource:
    if not sites:
        raise UserError("webarena-lite needs --sites FILE with the addresses of the sites, see docs/webarena.md.")
    if mutating not in MUTATING:
        raise UserError(f"Unknown value of mutating {mutating!r}. Choose one of {', '.join(MUTATING)}.")
    sets = read_site_sets(Path(sites))
    if mutating == "reset" and (len(sets) < browsers or not all(one.can_reset for one in sets)):
        raise UserError(
            f"mutating = reset needs a set of sites for each of the {browsers} browsers, each with reset_urls or "
            f"reset_command; {sites} has {len(sets)}. Add them, or lower --browsers."
        )
    dataset = read_configs(data_of(SCORER, "webarena_verified/assets/dataset/webarena-verified.json"))
    verified = {one["task_id"]: one for one in dataset}
    chosen: Judge
    if judge == "verified":
        kinds = {number: verified_kind(one) for number, one in verified.items()}
        chosen = VerifiedJudge(python_of(SCORER), kinds)
    elif judge == "benchmark" and model:
        chosen = BenchmarkJudge(model, url or None)
    else:
        raise UserError(f"Unknown judge {judge!r}. Choose verified, or benchmark with --judge-model (and --judge-url).")
    every = read_configs(data_of(BROWSERS, "webarena/test.raw.json"))
    lite = read_configs(data_of(BROWSERS, "browsergym/webarenalite/test_webarena_lite.raw.json"))
    return LiteSource(every, lite, verified, sets, chosen, mutating)
