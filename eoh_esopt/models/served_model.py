"""A language model behind one or several of our servers: replies and directions are spread, updates go to all."""

from __future__ import annotations

import asyncio
import atexit
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.models import chat
from eoh_esopt.models.background import Background
from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import Prompt, Reply, Request, Sampling
from eoh_esopt.models.served_fleet import Fleet
from eoh_esopt.models.served_link import Link
from eoh_esopt.models.served_replica import Course, Replica
from eoh_esopt.models.stopwatch import Stopwatch
from eoh_esopt.models.vllm.together import Place
from eoh_esopt.models.vllm.wire import FUNCTION_ENDS, SEED_MASK, server_urls
from operators.errors import UserError
from operators.records import Direction, Update
from operators.update_fields import fields_of

_SPREAD = 8
"""A batch has up to this many times the replies that one server writes at once, so that several have work."""

_NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "min_p": 0.0}
"""Settings that servers else take from the model's files."""


T = TypeVar("T")


@dataclass(frozen=True)
class _Job:
    """Requests of one direction, by their positions."""

    direction: Direction | None
    positions: tuple[int, ...]


class ServedModel:
    """A model on servers started by `eoh-esopt serve`.

    Args:
        servers: their addresses, separated by commas.
        model: the model they serve, by name, hub id or folder.
        scope: name of the scope that directions move.
        sampling: how tokens are drawn.
        restore: restore mode; servers know `exact`.
        dtype: what the servers' weights have to be; auto takes any.
        max_batch: most replies that one server writes at once.
        settings: how conversations are held.
        timeout_s: limit of one reply, in seconds; those that wait for their turn on the server included.
        patience_s: how long to wait for a server when none is left, in seconds.
        notify: told when servers leave and come back.

    Raises:
        UserError: an address is wrong, no server answers, or one cannot take part.
    """

    def __init__(
        self,
        servers: str,
        *,
        model: str,
        scope: str,
        sampling: Sampling,
        restore: str = "exact",
        dtype: str = "auto",
        max_batch: int = 64,
        settings: chat.ChatSettings = chat.PLAIN,
        timeout_s: float = 600.0,
        patience_s: float = 180.0,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._sampling, self._max_batch, self._settings = sampling, max_batch, settings
        session = secrets.token_hex(16)
        urls = server_urls(servers)
        self._course = Course(scope, restore, model, dtype)
        self._background = Background()
        self._closed = False
        atexit.register(self.close)
        try:
            links = [Link(url, session, timeout_s=timeout_s, connections=max_batch) for url in urls]
            self._fleet = Fleet(links, self._course, patience_s=patience_s, notify=notify)
            self._background.run(self._fleet.start())
        except BaseException:
            self.close()
            raise
        self._context: int = self._course.facts["context"]

    @property
    def parameters(self) -> int:
        """How many weights the model has."""
        return int(self._course.facts["parameters"])

    @property
    def stopwatch(self) -> Stopwatch:
        """What directions cost so far: the mean over the servers, which work side by side."""
        each = [replica.stopwatch for replica in self._fleet.replicas]
        return Stopwatch(sum(one.perturb for one in each) / len(each), sum(one.restore for one in each) / len(each))

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """Batches of whole directions where they fit, large enough for several servers whatever their number."""
        limit = _SPREAD * self._max_batch
        batches: list[list[int]] = []
        for _, group in groupby(range(len(requests)), lambda i: requests[i].direction):
            positions = list(group)
            for part in _parts(positions, limit):
                if not batches or len(batches[-1]) + len(part) > limit:
                    batches.append([])
                batches[-1] += part
        return batches

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch, each under its own direction. The weights are restored whatever happens.

        Raises:
            PartialReplies: no server is left.
        """
        return self._background.run(self._generate(requests))

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Log-probability of each of the prompt's tokens, on every server one after the other: float32."""
        return self._background.run(self._probe(prompt, direction))

    def apply(self, update: Update) -> None:
        """Move the true weights of all servers."""
        self._background.run(self._fleet.add(fields_of(update)))

    def checksum(self) -> str:
        """sha256 of the true weights, the same on all servers.

        Raises:
            UserError: it is not.
        """
        return self._background.run(self._fleet.checksum())

    def drift(self) -> float:
        """0: the true weights are kept."""
        return 0.0

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Let a server write a standard checkpoint into a folder that it shares with this process.

        Raises:
            UserError: it does not see the folder, as servers on other machines do not.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._background.run(self._fleet.export(folder, float32))

    def describe(self) -> dict[str, Any]:
        """What a history states of the model."""
        names = ("model", "parameters", "dtype", "device", "scope", "scope_elements", "restore", "extra_bytes")
        facts = {name: self._course.facts[name] for name in names}
        return {**facts, "backend": "served", "servers": len(self._fleet.replicas)}

    def close(self) -> None:
        """Leave the servers to others. They keep running."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        if hasattr(self, "_fleet"):
            self._background.run(self._fleet.close())
        self._background.close()

    async def _generate(self, requests: Sequence[Request]) -> list[Reply]:
        rendered = await self._rendered([(request.prompt, request.prefill) for request in requests])
        prompts, openings = [tokens for tokens, _ in rendered], [opening for _, opening in rendered]
        rooms = [
            chat.room(len(prompt), self._context, request.limit(self._sampling.max_new_tokens))
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        replies = {
            i: Reply(request.prefill, len(prompt), 0, truncated=True)
            for i, (request, prompt, room) in enumerate(zip(requests, prompts, rooms, strict=True))
            if not room
        }

        async def write(replica: Replica, position: int, tag: str, place: Place) -> tuple[int, Reply]:
            fields = self._fields(requests[position], prompts[position], rooms[position])
            answer = await replica.link.complete(fields, tag, place)
            return position, self._reply(requests[position], openings[position], answer)

        async def work(replica: Replica, job: _Job) -> None:
            """In parts that begin together and are written as a whole: what a reply runs beside is always the same."""
            async with replica.under(job.direction) as tag:
                for part in _parts(job.positions, self._max_batch):
                    if part[0] not in replies:
                        name = secrets.token_hex(8)
                        places = [Place(name, index, len(part)) for index in range(len(part))]
                        works = (write(replica, at, tag, place) for at, place in zip(part, places, strict=True))
                        replies.update(await _together(works))

        jobs = self._jobs(requests, [i for i in range(len(requests)) if i not in replies])
        try:
            await self._fleet.spread(jobs, work)
        except UserError as error:
            raise PartialReplies(str(error), replies) from error
        return [replies[i] for i in range(len(requests))]

    async def _probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        [(tokens, _)] = await self._rendered([(prompt, "")])
        fields = {"prompt": tokens, "model": self._course.facts["served"], **_NEUTRAL}
        fields |= {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}

        async def ask(replica: Replica) -> list[float]:
            async with replica.under(direction) as tag:
                entries = (await replica.link.complete(fields, tag))["choices"][0]["prompt_logprobs"]
            return [entry[str(token)]["logprob"] for token, entry in zip(tokens[1:], entries[1:], strict=True)]

        found = await self._fleet.each(ask)
        return np.array([value for one in self._fleet.replicas for value in found.get(one, [])], np.float32)

    async def _rendered(self, turns: Sequence[tuple[Prompt, str]]) -> list[tuple[list[int], str]]:
        """Prompts as conversations, each turned into tokens once, and the tags that have begun a thought."""
        distinct = list(dict.fromkeys(turns))
        rendered = await self._fleet.one(lambda replica: replica.link.render(distinct, self._settings))
        by_turn = dict(zip(distinct, rendered, strict=True))
        return [by_turn[turn] for turn in turns]

    def _jobs(self, requests: Sequence[Request], positions: Sequence[int]) -> list[_Job]:
        """The work, the largest pieces first; what has no direction is split so that every server gets a part."""
        jobs = []
        for direction, group in groupby(positions, lambda i: requests[i].direction):
            whole = list(group)
            servers = 1 if direction else max(1, len(self._fleet.live))
            share = min(self._max_batch, -(-len(whole) // servers))
            jobs += [_Job(direction, tuple(part)) for part in ([whole] if direction else _parts(whole, share))]
        return sorted(jobs, key=lambda job: -len(job.positions))

    def _fields(self, request: Request, prompt: list[int], room: int) -> dict[str, Any]:
        ends = (*self._settings.until(request.stop).stop, *(FUNCTION_ENDS if request.prefill else ()))
        return {
            "model": self._course.facts["served"],
            "prompt": prompt,
            "max_tokens": room,
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "top_k": self._sampling.top_k,
            "seed": request.seed & SEED_MASK,
            "stop": list(ends),
            "stop_token_ids": self._course.facts["ends"],
            **_NEUTRAL,
            "presence_penalty": self._sampling.presence_penalty,
        }

    def _reply(self, request: Request, opening: str, answer: dict[str, Any]) -> Reply:
        choice, usage = answer["choices"][0], answer["usage"]
        settings = self._settings.until(request.stop)
        text = request.prefill + opening + chat.finished(choice["text"], bool(request.prefill), settings)
        truncated = choice["finish_reason"] == "length"
        return Reply(text, usage["prompt_tokens"], usage["completion_tokens"], truncated=truncated)


def _parts(positions: Sequence[int], size: int) -> list[Sequence[int]]:
    return [positions[at : at + size] for at in range(0, len(positions), size)]


async def _together(works: Iterable[Awaitable[T]]) -> list[T]:
    """What all of them give; where one fails, the others are given up."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
