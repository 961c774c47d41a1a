"""An adapter of the loop: whoever brings tasks, a first prompt and a scorer has one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from eoh_esopt.models.protocol import Turn
from train_adapters.adapter import AgentTask, Environment, Judged, Limits
from train_adapters.react.environment import ReactEnvironment, Transcript
from train_adapters.react.limits import ReactEnding, ReactLimits
from train_adapters.react.moves import Move, parse_move
from train_adapters.react.rules import STOP
from train_adapters.tools import Mount, Sandbox

_SIDE_BY_SIDE = 256
"""Episodes: each tool is a process of some 10 MB and two descriptors, of which most systems give a trainer 1024."""


@dataclass(frozen=True)
class Brief:
    """How an episode begins.

    Attributes:
        system: the system turn; a skill is added at its end, see `train_adapters.skills.inject`.
        user: the task.
        mounts: files that the tool is given.
    """

    system: str
    user: str
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True)
class ReactParts:
    """What makes an adapter.

    Attributes:
        name: of the adapter.
        tasks: by split.
        brief: how an episode of a task begins.
        score: what a finished episode was worth. It is not asked where no command was run, or the context overflowed:
            that is worth 0.
        sandbox: opens the tools.
        limits: of each episode.
        skill: told at the end of the system turn; may be empty.
        success: least reward of a success, see `train_adapters.adapter.success_threshold`.
    """

    name: str
    tasks: Mapping[str, Sequence[AgentTask]]
    brief: Callable[[AgentTask], Brief]
    score: Callable[[AgentTask, Transcript], Awaitable[float]]
    sandbox: Sandbox
    limits: ReactLimits = ReactLimits()  # noqa: RUF009 - frozen
    success: float = 1.0


class ReactAdapter:
    """The adapter.

    Args:
        parts: what it is made of.
    """

    def __init__(self, parts: ReactParts) -> None:
        self._parts = parts

    @property
    def name(self) -> str:
        return self._parts.name

    @property
    def success(self) -> float:
        """Least reward of a success."""
        return self._parts.success

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for people, before anything runs."""
        return self._parts.sandbox.notes

    @property
    def side_by_side(self) -> int:
        """Most episodes at a time."""
        return _SIDE_BY_SIDE

    def tasks(self, split: str) -> Sequence[AgentTask]:
        return self._parts.tasks.get(split, ())

    def limits(self, task: AgentTask) -> Limits:
        return Limits(self._parts.limits.turns, self._parts.limits.new_tokens, STOP)

    def environment(self, task: AgentTask) -> ReactEnvironment:
        brief = self._parts.brief(task)
        opening = (Turn("system", brief.system), Turn("user", brief.user))
        return ReactEnvironment(opening, self._parts.sandbox.open(brief.mounts), self._parts.limits)

    def prompt(self, task: AgentTask, observation: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return observation

    def parse(self, reply: str) -> Move | None:
        return parse_move(reply)

    async def score(self, task: AgentTask, environment: Environment) -> float:
        transcript = cast(ReactEnvironment, environment).transcript
        if not transcript.tool_calls:
            return Judged(0.0, "no command was run")
        if transcript.ending is ReactEnding.CONTEXT_FULL:
            return Judged(0.0, "the context is full")
        return await self._parts.score(task, transcript)
