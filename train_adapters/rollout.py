"""Episodes side by side: their seeds, their prompts, the steps that replies ask for, and how each of them ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel, Prompt, Reply, Request
from operators.errors import UserError
from operators.records import Direction
from train_adapters.adapter import (
    Adapter,
    AgentFailed,
    AgentTask,
    Ending,
    Environment,
    Episode,
    hear,
    is_repeatable,
    patience,
    why,
)
from train_adapters.pace import ROUNDS, Told, play_at
from train_adapters.seeds import turn_seed
from train_adapters.trajectories import Step, news

ATTEMPTS = 2
"""How often an episode is begun before a failure that is not the agent's stands."""

_LONGEST_REASON = 300


@dataclass(frozen=True)
class Job:
    """One episode to play.

    Attributes:
        task: what is played.
        sample: running number of the episode among those of the task.
        direction: the perturbation it is played under; None for the current weights.
    """

    task: AgentTask
    sample: int
    direction: Direction | None


Keep = Callable[[Job, Episode, tuple[Step, ...]], None]
"""Takes an episode that is over, and what was said in it."""


@dataclass(frozen=True)
class Table:
    """What episodes are played with.

    Attributes:
        adapter: of the tasks.
        model: writes the replies.
        seed: of the run.
        time: takes the time of writing, and of the environments.
        told: hears of episodes that are over.
        keep: takes what was said in them, in the order of the jobs; None where nobody wants to know.
        pace: when the model answers which episodes, see `train_adapters.pace`.
    """

    adapter: Adapter
    model: LanguageModel
    seed: int
    time: Timekeeper
    told: Told = lambda count: None
    keep: Keep | None = None
    pace: str = ROUNDS


def waves(model: LanguageModel, jobs: Sequence[Job], most: int | None = None) -> list[list[Job]]:
    """The jobs, split into those that are played side by side: as many directions as one batch of the model holds.

    Jobs of one direction stand side by side and stay together, unless the environments cannot play as many at once.

    Args:
        model: writes the replies.
        jobs: the episodes.
        most: episodes that can be played at once, see `side_by_side`; None for any number.
    """
    batches = model.batches([Request("", "", 0, job.direction) for job in jobs])
    batch_of = {place: number for number, batch in enumerate(batches) for place in batch}
    found: dict[int, list[Job]] = {}
    first: dict[Direction | None, int] = {}
    for place, job in enumerate(jobs):
        found.setdefault(first.setdefault(job.direction, batch_of[place]), []).append(job)
    return [
        wave[first : first + (most or len(wave))]
        for wave in found.values()
        for first in range(0, len(wave), most or len(wave))
    ]


def play(table: Table, jobs: Sequence[Job], place: str) -> list[Episode]:
    """Play episodes side by side.

    Args:
        table: what they are played with.
        jobs: the episodes.
        place: what they are for, part of the seeds of their replies.

    Returns:
        One a job, in their order.

    Raises:
        UserError: the model is gone, or an environment says what the user has to mend.
    """
    return asyncio.run(_play(table, [_Player(table, job, place) for job in jobs]))


async def _play(table: Table, players: Sequence[_Player]) -> list[Episode]:
    try:
        await play_at(table.pace, players, table.model, table.time, table.told, patience(table.adapter))
    finally:
        await asyncio.gather(*(player.leave() for player in players))
    return [player.told(table.keep) for player in players]


class _Player:
    """One episode on its way: the next request while it lasts, its outcome once it is over."""

    def __init__(self, table: Table, job: Job, place: str) -> None:
        self._adapter, self._seed, self._job, self._place = table.adapter, table.seed, job, place
        self._keeps = table.keep is not None
        self._environment: Environment | None = None
        self._attempts = 0
        self._prompt_tokens = self._new_tokens = 0  # of all attempts: they were spent
        self.late = 0
        self.episode: Episode | None = None
        self.request = Request("", "", 0)

    async def begin(self) -> None:
        """Begin the episode, or begin it anew, with a new environment."""
        self._attempts += 1
        self._turns = self._unparsed = 0
        self._steps: list[Step] = []
        self._before: tuple[Prompt | None, str] = None, ""  # the prompt before, and what it was answered
        try:
            self._limits = self._adapter.limits(self._job.task)
            self._environment = self._adapter.environment(self._job.task)
            await self._environment.reset()
            await self._look()
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - environments are users' programs
            await self._fail(error)

    async def take(self, reply: Reply) -> None:
        """Take the step that a reply asks for."""
        self._turns += 1
        self._prompt_tokens += reply.prompt_tokens
        self._new_tokens += reply.new_tokens
        if self._keeps:
            self._steps.append(Step(news(self.request.prompt, *self._before), reply.text))
            self._before = self.request.prompt, reply.text
        assert self._environment is not None
        try:
            hear(self._environment, reply)
            if reply.truncated and not reply.new_tokens:
                raise AgentFailed("the prompt fills the model's context")
            action = self._adapter.parse(reply.text)
            self._unparsed += action is None
            await self._environment.step(action)
            await self._look()
        except AgentFailed as error:
            await self._end(Ending.AGENT_FAILED, str(error))
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - environments are users' programs
            await self._fail(error)

    def told(self, keep: Keep | None) -> Episode:
        """The episode, which is over; what was said in it goes to whoever keeps it."""
        assert self.episode is not None
        if keep is not None:
            keep(self._job, self.episode, tuple(self._steps))
        return self.episode

    async def leave(self) -> str:
        """Close the environment, if one is open.

        Returns:
            What went wrong in that, for people; the outcome of the episode stands.
        """
        environment, self._environment = self._environment, None
        try:
            if environment is not None:
                await environment.close()
        except Exception as error:  # noqa: BLE001 - environments are users' programs
            return f"closing: {_said(error)}"
        return ""

    async def _look(self) -> None:
        """See whether the episode goes on, and with which prompt."""
        assert self._environment is not None
        if self._environment.done:
            await self._end(Ending.SCORED, "")
        elif self._turns >= self._limits.turns:
            await self._end(Ending.AGENT_FAILED, f"not done after {self._turns} turns")
        else:
            prompt = self._adapter.prompt(self._job.task, self._environment.observe())
            seed = turn_seed(self._seed, self._place, self._job.task.id, self._job.sample, self._turns)
            self.request = Request(prompt, "", seed, self._job.direction, self._limits.stop, self._limits.new_tokens)

    async def _fail(self, error: Exception) -> None:
        repeatable = self._environment is None or is_repeatable(self._environment)
        await self.leave()
        if self._attempts < ATTEMPTS and repeatable:
            await self.begin()
        else:
            self._book(Ending.INFRA_FAILED, None, _said(error))

    async def _end(self, ending: Ending, reason: str) -> None:
        """Have the episode judged."""
        assert self._environment is not None
        reward: float | None = None
        try:
            reward = await self._adapter.score(self._job.task, self._environment)
            if not math.isfinite(reward):
                raise ValueError(f"the reward is {reward}")
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - scorers are users' programs
            ending, reward, reason = Ending.JUDGE_FAILED, None, _said(error)
        closing = await self.leave()
        self._book(ending, reward, "; ".join(filter(None, (reason, closing))))

    def _book(self, ending: Ending, reward: float | None, reason: str) -> None:
        self.episode = Episode(
            task=self._job.task.id,
            sample=self._job.sample,
            ending=ending,
            reward=None if reward is None else float(reward),
            reason=_line(reason),
            why="" if reward is None else _line(why(reward)),
            turns=self._turns,
            unparsed=self._unparsed,
            minimum_horizon=self._job.task.minimum_horizon,
            group=self._job.task.group,
            prompt_tokens=self._prompt_tokens,
            new_tokens=self._new_tokens,
            late=self.late,
        )


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REASON]


def _said(error: Exception) -> str:
    """Its kind, by which failures are counted, and its message. Errors may have a kind of their own in `kind`."""
    return f"{getattr(error, 'kind', type(error).__name__)}: {error}"
