"""The browsers of a training, each with its stage: taken for an episode, and given back."""

from __future__ import annotations

import asyncio
import queue
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.failures import Breaker, InfraFailed
from train_adapters.webarena.stages import Stage

_T = TypeVar("_T")

_PATIENCE = 600.0
"""Seconds that an episode waits for a browser. The trainer never begins more than there are, see `WebAdapter`."""


@dataclass(frozen=True)
class Seat:
    """A browser and what it plays on."""

    browser: Browser
    stage: Stage


class Fleet:
    """Some seats, and a thread for each: their calls block, and episodes are coroutines of changing event loops.

    Args:
        seats: at least one.
        breaker: of the sites.
    """

    def __init__(self, seats: Sequence[Seat], breaker: Breaker) -> None:
        self.seats = tuple(seats)
        self.breaker = breaker
        self._free: queue.Queue[Seat] = queue.Queue()
        for seat in seats:
            self._free.put(seat)
        self._threads = ThreadPoolExecutor(len(seats), "browser")
        self._end = weakref.finalize(self, _close, self.seats, self._threads)  # at the latest when Python ends

    async def take(self) -> Seat:
        """A seat that is free.

        Raises:
            InfraFailed: none came free.
        """
        try:
            return await asyncio.to_thread(self._free.get, True, _PATIENCE)
        except queue.Empty:
            raise InfraFailed("no_browser", f"none of {len(self.seats)} browsers came free") from None

    def give_back(self, seat: Seat) -> None:
        """It can be taken again."""
        self._free.put(seat)

    async def run(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Do what blocks in a thread of the fleet's."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def close(self) -> None:
        """End the browsers and the sites."""
        self._end()


def _close(seats: Sequence[Seat], threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=True)
    for seat in seats:
        seat.browser.close()
        seat.stage.close()
