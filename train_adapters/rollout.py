"""Episodes side by side: in each round the model answers all that wait for it at once, then all take their step.

Rounds keep step with one another because a reply may depend, in its last bits, on what else is in the model's batch:
with the same episodes in the same rounds, a training that was stopped and resumed ends in the same weights.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel, Reply, Request
from operators.errors import UserError
from operators.records import Direction
from train_adapters.adapter import Adapter, AgentFailed, AgentTask, Ending, Environment, Episode
from train_adapters.seeds import turn_seed

ATTEMPTS = 2
"""How often an episode is begun before a failure that is not the agent's stands."""

_LONGEST_REASON = 300

Told = Callable[[int], None]
"""Hears how many more episodes are over."""


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


@dataclass(frozen=True)
class Table:
    """What episodes are played with.

    Attributes:
        adapter: of the tasks.
        model: writes the replies.
        seed: of the run.
        time: takes the time of writing, and of the environments.
        told: hears of episodes that are over.
    """

    adapter: Adapter
    model: LanguageModel
    seed: int
    time: Timekeeper
    told: Told = lambda count: None


def waves(model: LanguageModel, jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs, split into those that are played side by side: as many directions as one batch of the model holds.

    Jobs of one direction stand side by side and stay together.
    """
    batches = model.batches([Request("", "", 0, job.direction) for job in jobs])
    batch_of = {place: number for number, batch in enumerate(batches) for place in batch}
    found: dict[int, list[Job]] = {}
    first: dict[Direction | None, int] = {}
    for place, job in enumerate(jobs):
        found.setdefault(first.setdefault(job.direction, batch_of[place]), []).append(job)
    return list(found.values())


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
    live = list(players)
    try:
        with table.time.waiting():
            await asyncio.gather(*(player.begin() for player in live))
        while live := _still(live, table.told):
            replies = _write(table, [player.request for player in live])
            with table.time.waiting():
                await asyncio.gather(*(one.take(reply) for one, reply in zip(live, replies, strict=True)))
    finally:
        await asyncio.gather(*(player.leave() for player in live))
    return [player.episode for player in players if player.episode is not None]


def _still(players: Sequence[_Player], told: Told) -> list[_Player]:
    live = [player for player in players if player.episode is None]
    if len(live) < len(players):
        told(len(players) - len(live))
    return live


def _write(table: Table, requests: Sequence[Request]) -> list[Reply]:
    replies: dict[int, Reply] = {}
    with table.time.writing():
        for batch in table.model.batches(requests):
            written = table.model.generate([requests[place] for place in batch])
            replies.update(zip(batch, written, strict=True))
    return [replies[place] for place in range(len(requests))]


class _Player:
    """One episode on its way: the next request while it lasts, its outcome once it is over."""

    def __init__(self, table: Table, job: Job, place: str) -> None:
        self._adapter, self._seed, self._job, self._place = table.adapter, table.seed, job, place
        self._environment: Environment | None = None
        self._attempts = 0
        self._prompt_tokens = self._new_tokens = 0  # of all attempts: they were spent
        self.episode: Episode | None = None
        self.request = Request("", "", 0)

    async def begin(self) -> None:
        """Begin the episode, or begin it anew, with a new environment."""
        self._attempts += 1
        self._turns = self._unparsed = 0
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
        assert self._environment is not None
        try:
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
            self.request = Request(prompt, "", seed, self._job.direction)

    async def _fail(self, error: Exception) -> None:
        await self.leave()
        if self._attempts < ATTEMPTS:
            await self.begin()
        else:
            self._book(Ending.INFRA_FAILED, None, _said(error))

    async def _end(self, ending: Ending, reason: str) -> None:
        """Have the episode judged."""
        assert self._environment is not None
        reward: float | None = None
        try:
            reward = float(await self._adapter.score(self._job.task, self._environment))
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
            reward=reward,
            reason=" ".join(reason.split())[:_LONGEST_REASON],
            turns=self._turns,
            unparsed=self._unparsed,
            minimum_horizon=self._job.task.minimum_horizon,
            prompt_tokens=self._prompt_tokens,
            new_tokens=self._new_tokens,
        )


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
