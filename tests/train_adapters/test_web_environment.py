"""An episode in a browser, with a browser that is made up: retries, what may be begun anew, and when it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from train_adapters.adapter import AgentFailed, AgentTask
from train_adapters.webarena.actions import Action, parse_action
from train_adapters.webarena.environment import NO_ACTION, WebEnvironment, check_turns
from train_adapters.webarena.failures import Breaker, InfraFailed
from train_adapters.webarena.fleet import Fleet, Seat
from train_adapters.webarena.stages import Ended, Opening

TASK = AgentTask("t", "train", {"intent": "Buy a mug", "sites": ["shop"], "mutates": True}, group="shop")
Answers = Callable[[str, int], dict[str, Any]]


class FakeBrowser:
    """Answers commands as it is told: of each command, its name and how often it came."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.seen: list[str] = []

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        self.seen.append(command)
        page = {"url": "http://shop/", "title": "Shop", "lines": ["[1] link 'Mug'"], "problem": "", "reward": 0.0}
        return {**page, "done": False, "writes": 0, "goal": ""} | self.answers(command, self.seen.count(command))

    def close(self) -> None:
        self.seen.append("close")


class FakeStage:
    def __init__(self, untouched: bool = False) -> None:
        self.untouched = untouched
        self.changes = 0
        self.judged: list[Ended] = []

    def prepare(self, task: AgentTask, browser: Any) -> Opening:
        return Opening("http://shop/")

    def judge(self, task: AgentTask, ended: Ended, browser: Any) -> float:
        self.judged.append(ended)
        return 1.0

    def note_changes(self) -> None:
        self.changes += 1

    def close(self) -> None:
        pass


def fleet_of(answers: Answers, stage: FakeStage | None = None, breaker: Breaker | None = None) -> Fleet:
    seat: Any = Seat(FakeBrowser(answers), stage or FakeStage())  # type: ignore[arg-type]
    return Fleet([seat], breaker or Breaker())


def down(command: str, count: int, *, at: tuple[str, ...], times: int = 99) -> dict[str, Any]:
    if command in at and count <= times:
        raise InfraFailed("site_down", "refused")
    return {}


def play(fleet: Fleet, *replies: str, retries: int = 1) -> tuple[WebEnvironment, bool]:
    """The environment after the replies, and whether it may be begun anew."""

    async def played() -> tuple[WebEnvironment, bool]:
        environment = WebEnvironment(TASK, fleet, retries, 0.0, 60.0)
        try:
            await environment.reset()
            for reply in replies:
                await environment.step(parse_action(reply))
        except InfraFailed:
            pass
        return environment, environment.repeatable

    return asyncio.run(played())


def test_a_site_that_comes_back_costs_no_episode() -> None:
    """Before the first page is shown nothing has happened, so it can be tried again."""
    fleet = fleet_of(lambda command, count: down(command, count, at=("open",), times=1))
    environment, _ = play(fleet, 'do(action="Click", element="1")')
    assert environment.observe().actions == ('do(action="Click", element="1")',)


def test_a_site_that_stays_down_opens_its_circuit() -> None:
    """The next episode must not wait for it again."""
    breaker = Breaker(limit=2)
    fleet = fleet_of(lambda command, count: down(command, count, at=("open",)), breaker=breaker)
    play(fleet)
    with pytest.raises(InfraFailed, match="in a row"):
        breaker.check(["shop"])


def test_an_episode_that_changed_its_sites_is_not_begun_anew() -> None:
    """It would begin in what the first attempt left behind, say with the mug in the cart already."""
    stage = FakeStage()
    _, repeatable = play(fleet_of(lambda command, count: {"writes": 1}, stage), 'do(action="Click", element="1")')
    assert not repeatable
    assert stage.changes == 1


def test_an_action_that_was_cut_short_may_have_changed_the_sites() -> None:
    """Nobody can tell whether the order was sent before the browser died."""
    stage = FakeStage()
    fleet = fleet_of(lambda command, count: down(command, count, at=("act",)), stage)
    _, repeatable = play(fleet, 'do(action="Click", element="1")')
    assert not repeatable
    assert stage.changes == 1


def test_looking_around_changes_nothing() -> None:
    """An episode that only read may be begun anew: failures would cost more episodes than they have to."""
    fleet = fleet_of(lambda command, count: down(command, count, at=("act",)))
    assert play(fleet, 'do(action="Scroll Down")')[1]


def test_untouched_sites_allow_every_episode_to_begin_anew() -> None:
    """Where sites are put back anyway, no episode has to be lost."""
    fleet = fleet_of(lambda command, count: {"writes": 1}, FakeStage(untouched=True))
    assert play(fleet, 'do(action="Click", element="1")')[1]


def test_exit_ends_the_episode_with_its_message() -> None:
    """The message is the answer that is judged."""
    stage = FakeStage()
    environment, _ = play(fleet_of(lambda command, count: {}, stage), 'exit(message="$5")')
    assert environment.done
    assert asyncio.run(environment.judged()) == 1.0
    assert stage.judged == [Ended("$5", "http://shop/", 0.0)]


def test_a_browser_is_given_back_even_if_it_fails() -> None:
    """A seat that is lost with its browser would leave the next episode waiting for ever."""

    async def twice() -> None:
        fleet = fleet_of(lambda command, count: down(command, count, at=("finish",)))
        for _ in range(2):
            environment = WebEnvironment(TASK, fleet, 0, 0.0, 60.0)
            await environment.reset()
            with pytest.raises(InfraFailed):
                await environment.close()

    asyncio.run(asyncio.wait_for(twice(), 20))


def test_the_agent_is_told_what_was_wrong() -> None:
    """Without it the agent would try the same again."""
    environment, _ = play(fleet_of(lambda command, count: {"problem": "no such element"}), "go_backward()")
    assert environment.observe().feedback == "no such element"
    environment, _ = play(fleet_of(lambda command, count: {}), "hm")
    assert environment.observe().feedback == NO_ACTION
    assert environment.observe().actions == ("(none)",)


def test_replies_without_an_action_end_the_episode() -> None:
    """An agent that has lost the format would spend all its turns."""
    check_turns([None] * 4)
    check_turns([None, Action("Wait"), None, None, None, None])
    with pytest.raises(AgentFailed, match="without an action"):
        check_turns([Action("Wait"), *[None] * 5])


def test_the_same_action_over_and_over_ends_the_episode() -> None:
    """An agent that is stuck would spend all its turns."""
    click = Action("Click", "1")
    check_turns([click] * 4)
    check_turns([click, click, Action("Click", "2"), click, click, click])
    with pytest.raises(AgentFailed, match="5 times in a row"):
        check_turns([Action("Wait"), *[click] * 5])


@pytest.mark.parametrize("slow", ["slow_site", "slow_model"])
def test_time_that_others_spent_is_not_the_agents_fault(slow: str) -> None:
    """An agent would be given 0 for a model on a slow machine, and directions be ranked by who shared it."""

    def page(command: str, count: int) -> dict[str, Any]:
        time.sleep(0.2 if slow == "slow_site" and command == "act" else 0)
        return {}

    async def one() -> None:
        environment = WebEnvironment(TASK, fleet_of(page), 0, 0.0, 0.1)
        await environment.reset()
        if slow == "slow_model":
            await asyncio.sleep(0.2)
        await environment.step(Action("go_backward"))

    with pytest.raises(InfraFailed, match=r"episode_seconds = 0\.1") as failed:
        asyncio.run(one())
    assert failed.value.kind == slow


def test_getting_sites_ready_is_not_the_episodes_time() -> None:
    """Sites that take minutes to be put back would leave an episode no time, and the model be blamed for it."""

    def page(command: str, count: int) -> dict[str, Any]:
        time.sleep(0.3 if command == "open" else 0)
        return {}

    async def one() -> None:
        environment = WebEnvironment(TASK, fleet_of(page), 0, 0.0, 0.25)
        await environment.reset()
        await environment.step(Action("go_backward"))

    asyncio.run(one())
