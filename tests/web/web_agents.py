"""Agents that play by a script: they find elements by what they are called, and need no model."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterable, Sequence

from train_adapters.adapter import AgentFailed, AgentTask
from train_adapters.webarena.actions import Action
from train_adapters.webarena.adapter import WebAdapter
from train_adapters.webarena.environment import Observation, WebEnvironment

_FIELDS = ("textbox", "searchbox", "spinbutton", "combobox", "Date", "DateTime")
_ROLES = {
    "Click": ("link", "button", "checkbox", "radio", "switch", "tab", "menuitem", "option", *_FIELDS),
    "Type": _FIELDS,
    "Search": _FIELDS,
    "Select Dropdown Option": ("combobox", "listbox"),
}
_LINE = re.compile(r"\s*\[(\w+)\] (\w+) ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")

Script = Sequence[tuple[str, str, str]]
"""Actions by name, with what the element is called and the argument."""


def found(seen: Observation, roles: Sequence[str], name: str) -> str:
    """Id of the first element of one of the roles that is called so.

    Raises:
        AssertionError: there is none.
    """
    wanted = " ".join(name.split())
    for line in seen.page.lines:
        match = _LINE.match(line)
        if match and match[2] in roles and " ".join(ast.literal_eval(match[3]).split()) == wanted:
            return match[1]
    raise AssertionError(f"no {'/'.join(roles)} {name!r} on {seen.url}:\n" + "\n".join(seen.page.lines))


def resolved(seen: Observation, action: str, target: str, argument: str, last: str) -> Action:
    """The action of a step of a script."""
    if action == "exit":
        return Action("exit", argument=argument or target)
    if action == "Press Enter":
        return Action(action, found(seen, _FIELDS, target) if target else last)
    if action in _ROLES:
        return Action(action, found(seen, _ROLES[action], target), argument)
    return Action(action, argument=argument)


async def episode(
    adapter: WebAdapter, task: AgentTask, script: Script, after: Callable[[int], None] | None = None
) -> float:
    """The score of an episode that is played by a script; one that the agent leaves without `exit` is scored as it is.

    Args:
        adapter: of the task.
        task: what is played.
        script: what is done.
        after: told after each step its number, from 1.
    """
    environment = adapter.environment(task)
    assert isinstance(environment, WebEnvironment)
    try:
        await environment.reset()
        last = ""
        for number, (action, target, argument) in enumerate(script, 1):
            step = resolved(environment.observe(), action, target, argument, last)
            last = step.element or last
            await environment.step(step)
            assert not environment.observe().feedback, (task.id, str(step), environment.observe().feedback)
            if after is not None:
                after(number)
        return await adapter.score(task, environment)
    except AgentFailed:
        return await adapter.score(task, environment)
    finally:
        await environment.close()


def play_all(adapter: WebAdapter, played: Iterable[tuple[AgentTask, Script]]) -> dict[str, float]:
    """The scores of many episodes by task, as many at once as there are browsers."""

    async def every() -> dict[str, float]:
        places = asyncio.Semaphore(adapter.side_by_side)
        scores: dict[str, float] = {}

        async def one(task: AgentTask, script: Script) -> None:
            async with places:
                scores[task.id] = await episode(adapter, task, script)

        await asyncio.gather(*(one(task, script) for task, script in played))
        return scores

    return asyncio.run(every())
