"""Several servers with the same weights: work is spread over them, and those that fail come back by themselves.

Everything here runs in one event loop. A server that fails is taken out and asked again with growing pauses; when it
answers it is brought up to date before it gets work.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from eoh_esopt.models.served_link import Declined, Link, Unusable
from eoh_esopt.models.served_replica import FAILURES, Course, Replica, differing, gone
from eoh_esopt.models.vllm.wire import LEASE_S, NONCE
from operators.errors import UserError

ATTEMPTS = 5
"""How often a piece of work may take its server down before the run ends: the work may be what breaks them."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0

T = TypeVar("T")
Notify = Callable[[str], None]


class Fleet:
    """The servers of a run.

    Args:
        links: the way to each server.
        course: what the run's weights are.
        patience_s: how long to wait for a server when none is left, in seconds.
        notify: told when servers leave and come back.
    """

    def __init__(self, links: Sequence[Link], course: Course, *, patience_s: float, notify: Notify) -> None:
        self.replicas = [Replica(link, course) for link in links]
        self._course, self._patience_s, self._notify = course, patience_s, notify
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def live(self) -> list[Replica]:
        """Servers that can be used."""
        return [replica for replica in self.replicas if replica.live.is_set()]

    async def start(self) -> None:
        """Reach the servers and take them for this client.

        Raises:
            UserError: none answers, or one cannot take part: another model, another key, another client.
        """
        results = await asyncio.gather(*(self._join(replica) for replica in self.replicas), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if not self.live:
            listed = "; ".join(f"{one.url}: {one.reason}" for one in self.replicas)
            raise UserError(f"No server answers ({listed}). Start one: eoh-esopt serve --model {self._course.model}")
        self._spawn(self._beat())

    async def close(self) -> None:
        """Leave the servers to others."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(replica.release() for replica in self.replicas))

    async def add(self, update: dict[str, Any]) -> None:
        """Move the weights of every server; those that are out move when they come back.

        Raises:
            UserError: no server is left.
        """
        self._course.add(update)
        await self.each(Replica.catch_up)
        await self._verify()

    async def checksum(self) -> str:
        """sha256 of the true weights, which has to be the same on all servers.

        Raises:
            UserError: it is not, or no server is left.
        """
        found = await self.each(Replica.checksum)
        if len(set(found.values())) > 1:
            raise differing({replica.url: value for replica, value in found.items()})
        for replica in found:
            replica.verified = True
        value = next(iter(found.values()))
        if not self._course.updates:
            self._course.base = value
        return value

    async def export(self, folder: Path, float32: bool) -> None:
        """Let a server write its weights into a folder that it shares with this client.

        Raises:
            UserError: it does not see the folder, or cannot write.
        """
        replica = (await self._some())[0]
        nonce = secrets.token_hex(16)
        mark = folder / NONCE
        mark.write_text(nonce, encoding="ascii")
        try:
            await replica.export(folder.absolute(), nonce, float32)
        except FAILURES as error:
            raise UserError(
                f"The server {replica.url} cannot save to {folder}: {error} Save on its own machine, or make the "
                "weights again here: eoh-esopt replay RUN --save FOLDER."
            ) from error
        finally:
            mark.unlink()

    async def one(self, work: Callable[[Replica], Awaitable[T]]) -> T:
        """Let some live server do something.

        Raises:
            UserError: no server is left.
        """
        while True:
            replica = (await self._some())[0]
            try:
                return await work(replica)
            except FAILURES as error:
                self._take_out(replica, str(error))

    async def each(self, work: Callable[[Replica], Awaitable[T]]) -> dict[Replica, T]:
        """Let every live server do something; those that fail are taken out.

        Raises:
            UserError: no server is left.
        """
        while True:
            replicas = await self._some()
            results = await asyncio.gather(*(work(replica) for replica in replicas), return_exceptions=True)
            done: dict[Replica, T] = {}
            for replica, result in zip(replicas, results, strict=True):
                if not isinstance(result, BaseException):
                    done[replica] = result
                elif isinstance(result, FAILURES):
                    self._take_out(replica, str(result))
                else:
                    raise result
            if done:
                return done

    async def spread(self, jobs: Sequence[T], work: Callable[[Replica, T], Awaitable[None]]) -> None:
        """Do every job on some server, one job a server at a time. A job whose server fails is done by another.

        Raises:
            UserError: no server is left, a job took down too many, or the user has to mend something.
        """
        left = asyncio.Queue[tuple[T, int]]()
        for job in jobs:
            left.put_nowait((job, 1))
        unfinished = len(jobs)

        async def serve(replica: Replica) -> None:
            nonlocal unfinished
            while unfinished:
                await replica.live.wait()
                job, attempt = await left.get()
                try:
                    await work(replica, job)
                    unfinished -= 1
                except FAILURES as error:
                    self._take_out(replica, str(error))
                    if attempt == ATTEMPTS:
                        raise UserError(f"A piece of work failed on {attempt} servers, at last: {error}") from error
                    left.put_nowait((job, attempt + 1))

        async def watch() -> None:
            while unfinished:
                await self._some()
                await asyncio.sleep(0.05 if unfinished else 0)

        workers = [asyncio.ensure_future(serve(replica)) for replica in self.replicas]
        await _until_first_ends([asyncio.ensure_future(watch()), *workers])

    async def _join(self, replica: Replica) -> None:
        """Take a server at the start of a run; a client that was killed may have left its lease behind."""
        try:
            try:
                await replica.catch_up()
            except Declined as refusal:
                if refusal.code != "lease":
                    raise
                pause = (refusal.wait_s or LEASE_S) + 0.5
                self._notify(f"Server {replica.url}: {refusal} Trying once more in {pause:.0f} s")
                await asyncio.sleep(pause)
                await replica.catch_up()
        except Declined as refusal:
            raise UserError(f"The server {replica.url} cannot be used: {refusal}") from refusal
        except Unusable as error:
            raise UserError(str(error)) from error
        except FAILURES as error:
            self._take_out(replica, str(error))

    async def _some(self) -> list[Replica]:
        """The live servers; waits for one where there is none."""
        if not self.live:
            waits = [asyncio.ensure_future(replica.live.wait()) for replica in self.replicas]
            done, pending = await asyncio.wait(waits, timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
            for wait in pending:
                wait.cancel()
            if not done:
                raise gone(self.replicas)
        return self.live

    def _take_out(self, replica: Replica, reason: str) -> None:
        replica.live.clear()
        self._note(replica, reason)
        self._spawn(self._revive(replica))

    def _note(self, replica: Replica, reason: str) -> None:
        if reason != replica.reason:
            self._notify(f"Server {replica.url} gets no work until it can be used again: {reason}")
        replica.reason = reason

    async def _revive(self, replica: Replica) -> None:
        """Ask a server that is out until it can be used again."""
        pause = FIRST_PAUSE_S
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
            try:
                await replica.catch_up()
            except FAILURES as error:
                self._note(replica, str(error))
            else:
                self._notify(f"Server {replica.url} is back, with {len(self._course.updates)} updates")
                return

    async def _beat(self) -> None:
        """Keep the leases."""
        while True:
            await asyncio.sleep(LEASE_S / 4)
            await asyncio.gather(*(one.link.status() for one in self.live), return_exceptions=True)

    async def _verify(self) -> None:
        """Compare servers that came back with one that stayed."""
        back = [replica for replica in self.live if not replica.verified]
        stayed = [replica for replica in self.live if replica.verified][:1]
        if not back or not stayed:
            return
        try:
            expected = await stayed[0].checksum()
        except FAILURES as error:
            self._take_out(stayed[0], str(error))
            return
        for replica in back:
            with contextlib.suppress(*FAILURES):
                replica.verified = await replica.checksum() == expected
                if not replica.verified:
                    replica.distrust()
                    self._take_out(replica, "its weights differ from the other servers'")

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _until_first_ends(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Wait until one of the tasks is done or fails; the others are cancelled and clean up."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
