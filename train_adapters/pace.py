"""When the model answers which episodes.

In rounds: all that wait for the model are answered at once, then all take their step. A reply may depend, in its last
bits, on what else is in the model's batch: with the same episodes in the same rounds, a training that was stopped and
resumed ends in the same weights. A step that keeps the others waiting is left behind: its episode joins the round that
begins after it. When that is depends on the time, so such steps are counted.

Free: an episode joins the next batch as soon as it is ready, and others take their steps while the model writes. A slow
step delays nobody. Which episodes share a batch depends on the time that steps take, so replies repeat themselves only
where the model's do not depend on their batch.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel, Reply, Request
from operators.errors import UserError
from train_adapters.adapter import Episode

ROUNDS, FREE = "rounds", "free"
PACES = (ROUNDS, FREE)

_LINGER_S = 0.02
"""How long a batch waits for those that are nearly ready: little beside the time that writing it takes."""

Told = Callable[[int], None]
"""Hears how many more episodes are over."""


class Playing(Protocol):
    """An episode on its way.

    Attributes:
        late: steps so far that its rounds did not wait for.
    """

    late: int

    @property
    def episode(self) -> Episode | None:
        """What became of it; None while it goes on."""
        ...

    @property
    def request(self) -> Request:
        """What it asks of the model, while it goes on."""
        ...

    async def begin(self) -> None:
        """Get ready to ask."""
        ...

    async def take(self, reply: Reply) -> None:
        """Take the step that a reply asks for, and get ready to ask again."""
        ...


def check_pace(pace: str) -> None:
    """Check a name.

    Raises:
        UserError: there is no such pace.
    """
    if pace not in PACES:
        raise UserError(f"Unknown pace {pace!r}. Choose one of: {', '.join(PACES)}.")


async def play_at(
    pace: str, players: Sequence[Playing], model: LanguageModel, time: Timekeeper, told: Told, patience: float
) -> None:
    """Play episodes to their end.

    Args:
        pace: one of `PACES`.
        players: the episodes.
        model: answers them.
        time: takes the time.
        told: hears of those that are over.
        patience: seconds that a round waits for one more of its steps, at the least, see `_round`.
    """
    moves = {asyncio.create_task(player.begin()): player for player in players}
    # One thread that ends here: a model is never asked by two, and may be closed afterwards.
    with ThreadPoolExecutor(max_workers=1) as writer:
        hall = _Hall(players, moves, model, writer, time, told)
        try:
            await (_freely(hall) if pace == FREE else _in_rounds(hall, patience))
        finally:
            for move in moves:
                move.cancel()
            await asyncio.gather(*moves, return_exceptions=True)


@dataclass(frozen=True)
class _Hall:
    """Where episodes are played.

    Attributes:
        players: the episodes.
        moves: steps under way, each with its episode.
        model: answers them.
        writer: a thread for the model, where steps go on while it writes.
        time: takes the time.
        told: hears of those that are over.
    """

    players: Sequence[Playing]
    moves: dict[asyncio.Task[None], Playing]
    model: LanguageModel
    writer: Executor
    time: Timekeeper
    told: Told

    def still(self, done: Iterable[asyncio.Task[None]]) -> set[Playing]:
        """The episodes that go on after moves that are over."""
        players = [self.moves.pop(move) for move in done]
        live = {player for player in players if player.episode is None}
        if len(live) < len(players):
            self.told(len(players) - len(live))
        return live

    def answer(self, players: Sequence[Playing], replies: Sequence[Reply]) -> None:
        """Have episodes take the steps that their replies ask for."""
        for player, reply in zip(players, replies, strict=True):
            self.moves[asyncio.create_task(player.take(reply))] = player


async def _in_rounds(hall: _Hall, patience: float) -> None:
    wait, late = math.inf, set[Playing]()  # all begin together
    while hall.moves:
        with hall.time.waiting():
            ready = hall.still(await _round(hall.moves, wait))
        for player in hall.moves.values():
            player.late += player not in late
        late = set(hall.moves.values())
        asking = [player for player in hall.players if player in ready]
        if asking:
            requests = [player.request for player in asking]
            with hall.time.writing():
                replies = await _replies(hall.model, requests, hall.writer if late else None)
            hall.answer(asking, replies)
        wait = patience


async def _round(moves: Iterable[asyncio.Task[None]], patience: float) -> list[asyncio.Task[None]]:
    """The moves that are over: all of them, but for those that keep the others waiting.

    These are left behind when no further move has ended for `patience` seconds, or for as long again as the round had
    lasted, whichever is more: where every step takes its time, none is late.

    Raises:
        UserError: and whatever else a move raised.
    """
    began = monotonic()
    done, pending = await asyncio.wait(list(moves), return_when=asyncio.FIRST_COMPLETED)
    while pending:
        limit = max(patience, monotonic() - began)
        timeout = None if limit == math.inf else limit
        more, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not more:
            break
        done |= more
    return _without_errors(done)


async def _replies(model: LanguageModel, requests: Sequence[Request], writer: Executor | None) -> list[Reply]:
    """The replies, in the order of the requests.

    Args:
        model: writes them.
        requests: to it.
        writer: thread to write in, where steps go on meanwhile; None to write in this one, which Ctrl-C stops at once.
    """
    if writer is None:
        return _written(model, requests)
    return await asyncio.get_running_loop().run_in_executor(writer, _written, model, requests)


def _written(model: LanguageModel, requests: Sequence[Request]) -> list[Reply]:
    replies: dict[int, Reply] = {}
    for batch in model.batches(requests):
        replies.update(zip(batch, model.generate([requests[place] for place in batch]), strict=True))
    return [replies[place] for place in range(len(requests))]


async def _freely(hall: _Hall) -> None:
    """Write batch after batch, each from those that are ready, until nobody is left."""
    ready: set[Playing] = set()
    while hall.moves or ready:
        with hall.time.waiting():
            ready |= hall.still(await _settled(hall.moves, wait=not ready))
        waiting = [player for player in hall.players if player in ready]  # in their order, not in that of their steps
        if waiting:
            asking = [waiting[place] for place in hall.model.batches([player.request for player in waiting])[0]]
            requests = [player.request for player in asking]
            with hall.time.writing():
                replies = await asyncio.get_running_loop().run_in_executor(hall.writer, hall.model.generate, requests)
            ready.difference_update(asking)
            hall.answer(asking, replies)


async def _settled(moves: Iterable[asyncio.Task[None]], *, wait: bool) -> list[asyncio.Task[None]]:
    """The moves that are over, in no order.

    Args:
        moves: under way or over.
        wait: whether to wait for the first.

    Raises:
        UserError: and whatever else a move raised.
    """
    moves = list(moves)
    if not moves:
        return []
    if wait:
        await asyncio.wait(moves, return_when=asyncio.FIRST_COMPLETED)
    done, _ = await asyncio.wait(moves, timeout=_LINGER_S)
    return _without_errors(done)


def _without_errors(done: Iterable[asyncio.Task[None]]) -> list[asyncio.Task[None]]:
    done = list(done)
    for move in done:
        move.result()
    return done
