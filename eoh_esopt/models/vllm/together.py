"""Requests that are one batch: they get into the engine in their order, and begin together.

What runs beside what then never depends on how fast requests arrive. It decides how activations round, so a reply would
otherwise be another one when a machine is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from eoh_esopt.models.vllm.arguments import Refusal

PATIENCE_S = 10.0
"""How long a batch that is not complete holds up what else the engine does: its client may be gone."""

_PAUSE_S = 0.001
_KEPT_S = 600.0
"""How long a batch is known after it began: requests whose connection broke come again."""


@dataclass(frozen=True)
class Place:
    """A request's place in its batch.

    Attributes:
        batch: identifies the batch, the same for all its requests.
        index: the place, from 0.
        size: number of requests.
    """

    batch: str
    index: int
    size: int

    def __str__(self) -> str:
        return f"{self.batch}/{self.index}/{self.size}"


def read_place(text: str) -> Place:
    """The place that a header states.

    Raises:
        Refusal: it states none.
    """
    batch, _, numbers = text.partition("/")
    index, _, size = numbers.partition("/")
    if not (batch.isalnum() and index.isdecimal() and size.isdecimal() and int(index) < int(size)):
        raise Refusal("invalid", f"{text!r} is no place in a batch: BATCH/INDEX/SIZE.", 400)
    return Place(batch, int(index), int(size))


class Queue(Protocol):
    """An engine's queue of requests."""

    async def hold(self) -> None:
        """Begin nothing more and go on with nothing."""
        ...

    async def begin(self) -> None:
        """Begin and go on with whatever is there."""
        ...

    def waiting(self, batch: str) -> int:
        """How many requests of a batch have arrived and are not over."""
        ...


class _Batch:
    def __init__(self, size: int) -> None:
        self.arrived = [asyncio.Event() for _ in range(size)]
        self.admitted = [asyncio.Event() for _ in range(size)]
        self.open = True


class Together:
    """The batches that are being gathered.

    Args:
        queue: of the engine.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._batches: dict[str, _Batch] = {}
        self._gathering: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def admitted(self, place: Place) -> AsyncIterator[None]:
        """Around a request: it waits for its turn. One that comes again after its batch has begun does not wait."""
        batch = self._batches.get(place.batch)
        if batch is None:
            batch = self._batches[place.batch] = _Batch(place.size)
            task = asyncio.ensure_future(self._gather(place.batch, batch))
            self._gathering.add(task)
            task.add_done_callback(self._gathering.discard)
        if len(batch.arrived) != place.size:
            raise Refusal("invalid", f"Batch {place.batch} has {len(batch.arrived)} requests, not {place.size}.", 400)
        batch.arrived[place.index].set()
        try:
            await batch.admitted[place.index].wait()
            yield
        finally:
            batch.open = False  # complete, or one of them broke off: either way nobody waits for more

    async def _gather(self, name: str, batch: _Batch) -> None:
        await self._queue.hold()
        with contextlib.suppress(asyncio.TimeoutError):  # what has arrived begins without the rest
            await asyncio.wait_for(self._admit(name, batch), PATIENCE_S)
        for event in batch.admitted:
            event.set()
        await self._queue.begin()
        asyncio.get_running_loop().call_later(_KEPT_S, self._batches.pop, name)

    async def _admit(self, name: str, batch: _Batch) -> None:
        for index, (arrived, admitted) in enumerate(zip(batch.arrived, batch.admitted, strict=True)):
            while not arrived.is_set() and batch.open:
                await asyncio.sleep(_PAUSE_S)
            admitted.set()
            while self._queue.waiting(name) <= index and batch.open:
                await asyncio.sleep(_PAUSE_S)
