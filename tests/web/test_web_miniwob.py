"""Pages of MiniWoB++ in real Chromium: they draw the same task from the same seed, and give what they should."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from web_agents import Script, play_all

from train_adapters.adapter import AgentTask
from train_adapters.webarena.adapter import WebAdapter, make_adapter

_NAMES = "click-button,click-link,enter-text,login-user,choose-list,click-checkboxes"


@pytest.fixture(scope="module")
def miniwob() -> Iterator[WebAdapter]:
    adapter = make_adapter("miniwob", browsers=2, view="axtree", names=_NAMES, train=2)
    yield adapter
    adapter.close()


def goal_of(adapter: WebAdapter, task: AgentTask) -> str:
    """What the page asks for; an episode that only looks."""
    import asyncio

    from train_adapters.webarena.environment import WebEnvironment

    async def look() -> str:
        environment = adapter.environment(task)
        assert isinstance(environment, WebEnvironment)
        await environment.reset()
        try:
            return environment.observe().goal
        finally:
            await environment.close()

    return asyncio.run(look())


def quoted(goal: str) -> list[str]:
    return re.findall(r'"(.*?)"', goal)


SOLUTIONS: dict[str, Callable[[str], Script]] = {
    "click-button": lambda goal: [("Click", quoted(goal)[0], "")],
    "enter-text": lambda goal: [("Type", "", quoted(goal)[0]), ("Click", "Submit", "")],
    "choose-list": lambda goal: [
        ("Select Dropdown Option", "", goal.removeprefix("Select ").partition(" from")[0]),
        ("Click", "Submit", ""),
    ],
    "click-checkboxes": lambda goal: [
        *(("Click", name.strip(), "") for name in goal.removeprefix("Select ").partition(" and click")[0].split(",")),
        ("Click", "Submit", ""),
    ],
}


def test_a_page_gives_what_it_should(miniwob: WebAdapter) -> None:
    """Rewards that never come would leave the model with nothing to learn from."""
    tasks = [task for task in miniwob.tasks("train") if task.payload["name"] in SOLUTIONS]
    goals = {task.id: goal_of(miniwob, task) for task in tasks}
    scripts = [(task, SOLUTIONS[task.payload["name"]](goals[task.id])) for task in tasks if goals[task.id]]
    scripts = [(task, script) for task, script in scripts if all("nothing" not in one[1] for one in script)]
    assert len(scripts) >= 6
    assert set(play_all(miniwob, scripts).values()) == {1.0}
    wrong: list[tuple[AgentTask, Script]] = [
        (task, [("Click", "Submit", "")]) for task, _ in scripts if task.payload["name"] in ("enter-text",)
    ]
    assert set(play_all(miniwob, wrong).values()) == {0.0}


def test_a_seed_draws_one_task(miniwob: WebAdapter) -> None:
    """All directions of a generation have to play the same task."""
    first, *_, other = (task for task in miniwob.tasks("train") if task.payload["name"] == "enter-text")
    assert goal_of(miniwob, first) == goal_of(miniwob, first) != goal_of(miniwob, other)
