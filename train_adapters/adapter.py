"""What the trainer needs of an environment: tasks, episodes, a prompt, a parser and a scorer. Nothing else.

An episode is a loop of turns: the environment is observed, `prompt` writes the user turn from what was seen, the model
replies, `parse` finds the action in the reply, and the environment takes a step. It ends when the environment says so
or the turns are spent; then `score` says what it was worth.

Adapters are found by structure: a class with these methods is one, whatever it inherits from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from eoh_esopt.models.protocol import Prompt, Reply

SPLITS = ("train", "val", "test")
"""Learnt from; evaluated during the training; evaluated once at its end."""


@dataclass(frozen=True)
class AgentTask:
    """One task of a data set.

    Attributes:
        id: unique within its split.
        split: one of `SPLITS`.
        payload: what the environment needs to know; JSON values only, because their hash identifies the data set.
        minimum_horizon: fewest turns that solve it; None where that is not known.
        group: what its failures are counted under, such as a site; empty where nothing is to be told apart.
    """

    id: str
    split: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    minimum_horizon: int | None = None
    group: str = ""


@dataclass(frozen=True)
class Limits:
    """How long an episode may be.

    Attributes:
        turns: most replies of an episode, at least 1.
        new_tokens: most tokens of one reply, at least 1.
        stop: texts that end a reply; it does not contain them.
    """

    turns: int
    new_tokens: int
    stop: tuple[str, ...] = ()


class AgentFailed(Exception):
    """Raised by an environment when the agent has spoilt the episode: it ends there, and is scored as it stands."""


class Environment(Protocol):
    """One episode of one task. Every object is used for one episode.

    Exceptions other than `AgentFailed` are no fault of the agent's: the episode is tried once more with a new object,
    where it may be (see `is_repeatable`), and left out of the rewards if that fails too.
    """

    async def reset(self) -> None:
        """Get ready for the first turn."""
        ...

    def observe(self) -> Any:
        """What `Adapter.prompt` is to show: all that the model can know at this turn."""
        ...

    async def step(self, action: Any) -> None:
        """Take a turn.

        Args:
            action: what `Adapter.parse` found; None where it found no action, which is a turn spent all the same.

        Raises:
            AgentFailed: the agent has spoilt the episode.
        """
        ...

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        ...

    @property
    def reward(self) -> float:
        """What the episode has earned so far."""
        ...

    async def close(self) -> None:
        """Let go of processes and connections. Called once, whatever happened."""
        ...


@runtime_checkable
class Listens(Protocol):
    """An environment that wants the replies themselves, and not only the actions in them: it keeps a conversation."""

    def heard(self, reply: Reply) -> None:
        """What the model said; `step` follows with the action in it.

        Raises:
            AgentFailed: the agent has spoilt the episode.
        """
        ...


def hear(environment: Environment, reply: Reply) -> None:
    """Tell an environment the reply that its next step acts on, if it listens.

    Raises:
        AgentFailed: the agent has spoilt the episode.
    """
    if isinstance(environment, Listens):
        environment.heard(reply)


def is_repeatable(environment: Environment) -> bool:
    """Whether an episode that failed may be begun anew: what the environment says in `repeatable`, else it may.

    One that has changed something outside of itself may not: it would begin in what the first attempt left behind.
    """
    return bool(getattr(environment, "repeatable", True))


class Adapter(Protocol):
    """Everything that the trainer asks about one kind of task. Methods other than `score` must not wait."""

    @property
    def name(self) -> str:
        """For logs and messages."""
        ...

    def tasks(self, split: str) -> Sequence[AgentTask]:
        """The tasks of a split, always in the same order; none where the split does not exist.

        Raises:
            UserError: the data cannot be read; the message names the file and the line.
        """
        ...

    def limits(self, task: AgentTask) -> Limits:
        """How long an episode of the task may be."""
        ...

    def environment(self, task: AgentTask) -> Environment:
        """A new episode of the task, not yet reset."""
        ...

    def prompt(self, task: AgentTask, observation: Any) -> Prompt:
        """What the model answers: a user turn, or a whole conversation.

        Nothing is added to it: of what was said before, the model knows what stands in it.
        """
        ...

    def parse(self, reply: str) -> Any:
        """The action that a reply asks for, of whatever type `Environment.step` takes; None where it asks for none.

        It must cope with everything that a model writes: nothing at all, 100 kB of it, or digits of other scripts.
        """
        ...

    async def score(self, task: AgentTask, environment: Environment) -> float:
        """What a finished episode was worth, a finite number; often just `environment.reward`.

        A `Judged` number says why, which is kept with the episode.

        Exceptions count as a failure of the judge: the episode is left out of the rewards.
        """
        ...


PATIENCE_S = 2.0
"""How long a round waits for one more of its steps, at the least. Usual commands take a twentieth of it."""


def side_by_side(adapter: Adapter) -> int | None:
    """Most episodes that can be played at once: what the adapter says in an attribute `side_by_side`, else any."""
    found = getattr(adapter, "side_by_side", None)
    return None if found is None else int(found)


def patience(adapter: Adapter) -> float:
    """Seconds that others wait for a slow step at the least: what the adapter says in `patience`, else `PATIENCE_S`."""
    return float(getattr(adapter, "patience", PATIENCE_S))


def success_threshold(adapter: Adapter) -> float:
    """Least reward of a success: what the adapter says in an attribute `success`, else 1."""
    return float(getattr(adapter, "success", 1.0))


def notes_of(adapter: Adapter) -> tuple[str, ...]:
    """Lines for people before anything is played: what the adapter says in an attribute `notes`, else none."""
    return tuple(getattr(adapter, "notes", ()))


class Judged(float):
    """A reward that says why.

    Args:
        reward: the number.
        why: one line for people and for the log, such as the rule that decided.
    """

    why: str

    def __new__(cls, reward: float, why: str) -> Judged:
        made = super().__new__(cls, reward)
        made.why = why
        return made


def why(reward: float) -> str:
    """What a reward says for itself; empty where it says nothing."""
    return reward.why if isinstance(reward, Judged) else ""


class Ending(str, Enum):
    """How an episode ended. Exactly one of these is recorded for each episode."""

    SCORED = "scored"
    """The environment came to its end."""
    AGENT_FAILED = "agent_failed"
    """The agent spent its turns before that, or spoilt the episode. What it earned counts as its reward."""
    INFRA_FAILED = "infra_failed"
    """Ours, not the agent's: left out of the rewards."""
    JUDGE_FAILED = "judge_failed"
    """The scorer's, not the agent's: left out of the rewards."""

    @property
    def counts(self) -> bool:
        """Whether the episode's reward counts."""
        return self in (Ending.SCORED, Ending.AGENT_FAILED)


@dataclass(frozen=True)
class Episode:
    """What became of one episode.

    Attributes:
        task: id of the task.
        sample: running number of the episode among those of its task under one direction.
        ending: how it ended.
        reward: what it was worth; None unless the ending counts.
        reason: one line for people; empty for a scored episode.
        why: what the scorer said of the reward; empty where it said nothing.
        turns: replies that were taken: the realised horizon.
        unparsed: those without an action.
        minimum_horizon: fewest turns that solve the task; None where that is not known.
        group: the task's.
        prompt_tokens: read by the model over all turns.
        new_tokens: written by the model over all turns.
        late: steps that the other episodes of its round did not wait for, see `train_adapters.pace`.
    """

    task: str
    sample: int
    ending: Ending
    reward: float | None
    reason: str = ""
    why: str = ""
    turns: int = 0
    unparsed: int = 0
    minimum_horizon: int | None = None
    group: str = ""
    prompt_tokens: int = 0
    new_tokens: int = 0
    late: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.new_tokens
