"""One episode in a browser."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from train_adapters.adapter import AgentFailed, AgentTask
from train_adapters.webarena.actions import EXIT, Action
from train_adapters.webarena.failures import InfraFailed
from train_adapters.webarena.fleet import Fleet, Seat
from train_adapters.webarena.page_view import PageView, page_view
from train_adapters.webarena.stages import Ended, Opening

UNPARSED_LIMIT = 5
"""Replies in a row without an action that end an episode."""
REPEAT_LIMIT = 5
"""Times in a row that the same action ends an episode."""

NO_ACTION = "No action was found in the answer. Answer with one of the actions, on a line of its own."
_SCROLLS = ("Scroll Up", "Scroll Down")
_HARMLESS = ("Hover", "Wait", *_SCROLLS)


@dataclass(frozen=True)
class Observation:
    """All there is to know at a turn.

    Attributes:
        goal: what is to be done.
        url: of the page.
        title: of the page.
        page: the page.
        actions: taken so far, as the agent is told to write them; "(none)" for a reply without one.
        feedback: what was wrong with the last one; empty where nothing was.
        element: acted on last; empty before.
        scrolled: whether the last action was to scroll.
    """

    goal: str
    url: str
    title: str
    page: PageView
    actions: tuple[str, ...] = ()
    feedback: str = ""
    element: str = ""
    scrolled: bool = False


class WebEnvironment:
    """An episode of a task.

    Args:
        task: what is played.
        fleet: browsers and their sites.
        retries: how often the beginning of an episode is tried again, when nothing has happened yet.
        pause: seconds before the first of those tries, twice as long before the next.
        seconds: limit of the episode from its first page on.
    """

    def __init__(self, task: AgentTask, fleet: Fleet, retries: int, pause: float, seconds: float) -> None:
        self._task, self._fleet = task, fleet
        self._retries, self._pause = retries, pause
        self._began, self._seconds = time.monotonic(), seconds
        self._browsing = 0.0
        self._seat: Seat | None = None
        self._opening = Opening("")
        self._seen: dict[str, Any] = {}
        self._actions: list[Action | None] = []
        self._feedback = ""
        self._answer: str | None = None
        self._changed = False

    @property
    def repeatable(self) -> bool:
        """Whether the episode may be begun anew: it has not changed its sites, or they are untouched for each one."""
        return not self._changed or (self._seat is not None and self._seat.stage.untouched)

    async def reset(self) -> None:
        """Open the first page.

        Raises:
            InfraFailed: the sites or the browser fail, also when tried again.
        """
        self._seat = await self._fleet.take()
        for retry in range(self._retries + 1):
            try:
                self._fleet.breaker.check(self._sites)
                self._seen = await self._fleet.run(self._open, self._seat)
            except InfraFailed as failure:
                self._blame(failure)
                if retry == self._retries or failure.kind == "circuit_open":
                    raise
                await self._fleet.run(time.sleep, self._pause * 2**retry)
            else:
                self._fleet.breaker.worked(self._sites)
                self._began = time.monotonic()  # putting sites back and logging in are not the episode's time
                return

    def _open(self, seat: Seat) -> dict[str, Any]:
        self._opening = seat.stage.prepare(self._task, seat.browser)
        return seat.browser.call("open", **self._opening.arguments())

    def observe(self) -> Observation:
        last, view = self._actions[-1] if self._actions else None, page_view(self._seen)
        touched = [one.element for one in self._actions if one is not None and one.element]
        return Observation(
            goal=self._task.payload.get("intent") or self._seen["goal"],
            url=self._opening.named(self._seen["url"]),
            title=self._opening.named(self._seen["title"]),
            page=PageView(tuple(map(self._opening.named, view.lines)), view.first_visible),
            actions=tuple("(none)" if one is None else str(one) for one in self._actions),
            feedback=self._opening.named(self._feedback),
            element=touched[-1] if touched else "",
            scrolled=last is not None and last.name in _SCROLLS,
        )

    async def step(self, action: Action | None) -> None:
        """Take a turn.

        Raises:
            AgentFailed: too many replies in a row without an action, or with the same one.
            InfraFailed: the sites or the browser fail, or the time is spent: agents are limited by turns.
        """
        self._actions.append(action)
        self._feedback = NO_ACTION if action is None else ""
        if action is not None and action.name == EXIT:
            self._answer = action.argument
        elif action is not None:
            began = time.monotonic()
            await self._act(action)
            self._browsing += time.monotonic() - began
        check_turns(self._actions)
        self._check_time()

    def _check_time(self) -> None:
        lasted = time.monotonic() - self._began
        if lasted > self._seconds and not self.done:
            kind = "slow_site" if self._browsing > lasted / 2 else "slow_model"
            raise InfraFailed(
                kind,
                f"the episode took {lasted:.0f} s, {self._browsing:.0f} of them on pages; the limit is "
                f"episode_seconds = {self._seconds:g}",
            )

    async def _act(self, action: Action) -> None:
        assert self._seat is not None
        arguments = {"name": action.name, "element": action.element, "argument": action.argument}
        try:
            self._seen = await self._fleet.run(lambda seat: seat.browser.call("act", **arguments), self._seat)
        except InfraFailed as failure:
            if action.name not in _HARMLESS:  # nobody can tell how far it came
                self._note_changes(self._seat)
            self._blame(failure)
            raise
        if self._seen["writes"]:
            self._note_changes(self._seat)
        self._feedback = self._seen["problem"]

    def _note_changes(self, seat: Seat) -> None:
        self._changed = True
        seat.stage.note_changes()

    @property
    def done(self) -> bool:
        return self._answer is not None or bool(self._seen.get("done"))

    @property
    def reward(self) -> float:
        """What the page has given by itself; the rest is the judge's."""
        return float(self._seen.get("reward", 0.0))

    async def judged(self) -> float:
        """What the stage's judge says of the episode as it stands."""
        assert self._seat is not None
        ended = Ended(self._answer, self._seen["url"], self.reward)
        return await self._fleet.run(self._seat.stage.judge, self._task, ended, self._seat.browser)

    async def close(self) -> None:
        """Give the browser back, its page closed."""
        seat, self._seat = self._seat, None
        if seat is not None:
            try:
                await self._fleet.run(lambda: seat.browser.call("finish"))
            finally:
                self._fleet.give_back(seat)

    @property
    def _sites(self) -> Sequence[str]:
        sites: Sequence[str] = self._task.payload["sites"]
        return sites

    def _blame(self, failure: InfraFailed) -> None:
        if failure.of_the_site:
            self._fleet.breaker.failed(self._sites)


def check_turns(actions: Sequence[Action | None]) -> None:
    """End an episode that leads nowhere.

    Raises:
        AgentFailed: the last replies had no action, or all the same one.
    """
    if len(actions) >= UNPARSED_LIMIT and all(one is None for one in actions[-UNPARSED_LIMIT:]):
        raise AgentFailed(f"{UNPARSED_LIMIT} replies in a row without an action")
    if len(actions) >= REPEAT_LIMIT and actions[-1] is not None and len(set(actions[-REPEAT_LIMIT:])) == 1:
        raise AgentFailed(f"{REPEAT_LIMIT} times in a row {actions[-1]}")
