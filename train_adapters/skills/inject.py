"""Where a skill stands in the prompt: at the end of its first turn, under a heading of its own.

That is the end of the system turn where there is one, and else of the user's. An adapter that has another place for it
says so by a method `with_skill`, which takes the text and returns an adapter whose prompts show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eoh_esopt.models.protocol import Prompt
from train_adapters.adapter import Adapter, AgentTask, Environment, Limits

HEADING = "What was learnt from earlier attempts (the rules above hold all the same):"


def with_skill(adapter: Adapter, text: str) -> Adapter:
    """The adapter with prompts that show a skill; the adapter itself where the skill is empty."""
    if not text.strip():
        return adapter
    own = getattr(adapter, "with_skill", None)
    if own is None:
        return Skilled(adapter, text)
    made: Adapter = own(text)
    return made


class Skilled:
    """An adapter whose prompts end their first turn with a skill. Everything else is the other adapter's.

    Args:
        adapter: the other one.
        text: of the skill.
    """

    def __init__(self, adapter: Adapter, text: str) -> None:
        self._adapter = adapter
        self._block = f"\n\n{HEADING}\n{text.strip()}"

    @property
    def name(self) -> str:
        return self._adapter.name

    def tasks(self, split: str) -> Sequence[AgentTask]:
        return self._adapter.tasks(split)

    def limits(self, task: AgentTask) -> Limits:
        return self._adapter.limits(task)

    def environment(self, task: AgentTask) -> Environment:
        return self._adapter.environment(task)

    def prompt(self, task: AgentTask, observation: Any) -> Prompt:
        prompt = self._adapter.prompt(task, observation)
        if isinstance(prompt, str):
            return prompt + self._block
        first, *others = prompt
        return (replace(first, text=first.text + self._block), *others)

    def parse(self, reply: str) -> Any:
        return self._adapter.parse(reply)

    def __getattr__(self, name: str) -> Any:
        """What an adapter may have beside what it must have."""
        if name.startswith("_"):  # before there is an adapter to ask
            raise AttributeError(name)
        return getattr(self._adapter, name)

    async def score(self, task: AgentTask, environment: Environment) -> float:
        return await self._adapter.score(task, environment)
