"""When the model answers which episodes.

In rounds: all that wait for the model are answered at once, then all take their step. A reply may depend, in its last
bits, on what else is in the model's batch: with the same episodes in the same rounds, a training that was stopped and
resumed ends in the same weights.

Free: an episode joins the next batch as soon as it is ready, and others take their steps while the model writes. A slow
step delays nobody. Which episodes share a batch depends on the time that steps take, so replies repeat themselves only
where the model's do not depend on their batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
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
    """An episode on its way."""

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


async def play_at(pace: str, players: Sequence[Playing], model: LanguageModel, time: Timekeeper, told: Told) -> None:
    """Play episodes to their end."""
    await (_freely if pace == FREE else _in_rounds)(players, model, time, told)


async def _in_rounds(players: Sequence[Playing], model: LanguageModel, time: Timekeeper, told: Told) -> None:
    with time.waiting():
        await asyncio.gather(*(player.begin() for player in players))
    live = _still(players, told)
    while live:
        with time.writing():
            replies = _written(model, [player.request for player in live])
        with time.waiting():
            await asyncio.gather(*(one.take(reply) for one, reply in zip(live, replies, strict=True)))
        live = _still(live, told)


def _written(model: LanguageModel, requests: Sequence[Request]) -> list[Reply]:
    replies: dict[int, Reply] = {}
    for batch in model.batches(requests):
        replies.update(zip(batch, model.generate([requests[place] for place in batch]), strict=True))
    return [replies[place] for place in range(len(requests))]


def _still(players: Iterable[Playing], told: Told) -> list[Playing]:
    """Those that go on."""
    players = list(players)
    live = [player for player in players if player.episode is None]
    if len(live) < len(players):
        told(len(players) - len(live))
    return live


async def _freely(players: Sequence[Playing], model: LanguageModel, time: Timekeeper, told: Told) -> None:
    moves = {asyncio.create_task(player.begin()): player for player in players}
    # One thread that ends here: a model is never asked by two, and may be closed afterwards.
    with ThreadPoolExecutor(max_workers=1) as writer:
        try:
            await _keep_writing(players, moves, model, writer, time, told)
        finally:
            for move in moves:
                move.cancel()
            await asyncio.gather(*moves, return_exceptions=True)


async def _keep_writing(
    players: Sequence[Playing],
    moves: dict[asyncio.Task[None], Playing],
    model: LanguageModel,
    writer: Executor,
    time: Timekeeper,
    told: Told,
) -> None:
    """Write batch after batch, each from those that are ready, until nobody is left; `moves` are those under way."""
    ready: set[Playing] = set()
    while moves or ready:
        with time.waiting():
            done = await _settled(moves, wait=not ready)
        ready.update(_still([moves.pop(move) for move in done], told))
        waiting = [player for player in players if player in ready]  # in their order, not in that of their steps
        if waiting:
            asking = [waiting[place] for place in model.batches([player.request for player in waiting])[0]]
            requests = [player.request for player in asking]
            with time.writing():
                replies = await asyncio.get_running_loop().run_in_executor(writer, model.generate, requests)
            ready.difference_update(asking)
            for player, reply in zip(asking, replies, strict=True):
                moves[asyncio.create_task(player.take(reply))] = player


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
    for task in done:
        task.result()
    return list(done)
