"""One server of several that hold the same weights: whether it can be used, and how it is brought up to date."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.models.served_link import Declined, Link, LinkDown, Unusable
from eoh_esopt.models.stopwatch import Stopwatch
from eoh_esopt.models.vllm.wire import NO_UPDATES, PROTOCOL, hash_after
from operators.errors import UserError
from operators.records import Direction

_SAME = ("model", "dtype", "context", "parameters", "scope_elements")
"""What servers of one run have in common."""

FAILURES = (LinkDown, Declined)
"""What takes a server out."""


@dataclass
class Course:
    """What the weights of a run are: what moves them, and the updates so far.

    Attributes:
        scope: which weights move.
        restore: restore mode.
        model: the model as the user named it.
        dtype: of the live weights; auto takes the servers'.
        updates: the fields of each.
        hashes: of the first 0, 1, 2, ... updates.
        base: checksum before the first update, once it is known.
        facts: what the first server said of itself.
    """

    scope: str
    restore: str
    model: str
    dtype: str
    updates: list[dict[str, Any]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=lambda: [NO_UPDATES])
    base: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, update: dict[str, Any]) -> None:
        """The next update."""
        self.updates.append(update)
        self.hashes.append(hash_after(self.hashes[-1], update))

    def check(self, url: str, status: Mapping[str, Any]) -> None:
        """See that a server can take part.

        Raises:
            Unusable: it serves something else, or speaks another protocol.
        """
        if status.get("protocol") != PROTOCOL:
            raise Unusable(f"The server {url} is of another release of eoh-esopt. Start it with this one.")
        names = {_plain(str(status.get(name))) for name in ("model", "asked_for", "served")}
        if _plain(self.model) not in names:
            raise Unusable(f"The server {url} serves {status.get('asked_for')}, not {self.model}. Give its --model.")
        if self.dtype not in ("auto", status["dtype"]):
            raise Unusable(
                f"The server {url} serves {status['dtype']} weights, not {self.dtype}: leave out --dtype, or start it "
                "with another."
            )

    def compare(self, url: str, status: Mapping[str, Any]) -> None:
        """See that a server holds what the first one does, after both were told what to move.

        Raises:
            Unusable: it does not.
        """
        if not self.facts:
            self.facts = dict(status)
        for name in _SAME:
            if status[name] != self.facts[name]:
                raise Unusable(
                    f"The servers differ: {url} has {name} {status[name]!r}, and the first one {self.facts[name]!r}. "
                    "Start them all with the same model and options."
                )


class Replica:
    """A server, and what this client knows of it.

    Attributes:
        link: the way to it.
        live: set while it can be used and has every update.
        lock: held by whoever changes its weights.
        reason: why it is out.
        verified: whether its weights were compared with another server's since it came back.
        stopwatch: what directions cost on it.
    """

    def __init__(self, link: Link, course: Course) -> None:
        self.link, self._course = link, course
        self.live = asyncio.Event()
        self.lock = asyncio.Lock()
        self.reason = ""
        self.verified = True
        self.stopwatch = Stopwatch()
        self._boot = ""
        self._tag = ""

    @property
    def url(self) -> str:
        """Its address."""
        return self.link.url

    def distrust(self) -> None:
        """Let it begin with the base weights when it comes back."""
        self._boot = ""

    async def catch_up(self) -> None:
        """Bring the server to the run's weights: what it lacks, or everything where it began anew.

        Raises:
            LinkDown, Declined: it cannot be used just now, or not at all.
        """
        async with self.lock:
            status = await self.link.status()
            self._course.check(self.url, status)
            step = status["step"]
            known = step < len(self._course.hashes) and status["updates"] == self._course.hashes[step]
            ours = status["yours"] and status["scope"] == self._course.scope and status["boot"] == self._boot
            if not (known and ours and status["state"] in ("ready", "perturbed")):
                status = await self._begin()
            elif status["state"] == "perturbed":
                status = await self.link.call("restore")
            while status["step"] < len(self._course.updates):
                update = self._course.updates[status["step"]]
                status = await self.link.call("update", expect=status["tag"], update=update)
            if status["updates"] != self._course.hashes[-1]:
                raise LinkDown("it has other updates than this run")
            self._boot, self._tag = status["boot"], status["tag"]
            self.reason = ""
            self.live.set()

    async def checksum(self) -> str:
        """sha256 of the server's true weights."""
        async with self.lock:
            return str((await self.link.call("checksum", expect=self._tag))["checksum"])

    async def export(self, folder: Path, nonce: str, float32: bool) -> None:
        """Let the server write its weights."""
        async with self.lock:
            await self.link.call("export", expect=self._tag, folder=str(folder), nonce=nonce, float32=float32)

    @asynccontextmanager
    async def under(self, direction: Direction | None) -> AsyncIterator[str]:
        """The server's weights under a direction, for as long as the block lasts; gives their tag."""
        async with self.lock:
            if direction is None:
                yield self._tag
                return
            before = self._tag
            try:
                with self.stopwatch.perturbing():
                    status = await self.link.call("perturb", expect=before, seed=direction.seed, sigma=direction.sigma)
                yield status["tag"]
            finally:
                self._tag = ""
                with self.stopwatch.restoring():
                    self._tag = (await self.link.call("restore"))["tag"]
                if self._tag != before:
                    raise LinkDown("its weights are not what they were before a direction")

    async def release(self) -> None:
        """Leave the server to others; where that fails, its lease runs out."""
        with contextlib.suppress(*FAILURES, UserError, asyncio.TimeoutError):
            await asyncio.wait_for(self.link.call("release"), 5.0)
        await self.link.close()

    async def _begin(self) -> dict[str, Any]:
        """The base weights, with this client as the one that moves them."""
        try:
            status = await self.link.call("init", scope=self._course.scope, restore=self._course.restore)
        except Declined as refusal:
            if refusal.code == "refused":
                raise Unusable(f"The server {self.url} cannot move the weights: {refusal}") from refusal
            raise
        self._course.compare(self.url, status)
        self.verified = not self._course.updates
        if self._course.base is not None:
            base = (await self.link.call("checksum", expect=status["tag"]))["checksum"]
            if base != self._course.base:
                raise Unusable(
                    f"The server {self.url} began with weights {base[:12]}, and the run with {self._course.base[:12]}. "
                    "Start it with the model that the run began with."
                )
        return status


def differing(checksums: Mapping[str, str]) -> UserError:
    """What to say when servers do not hold the same weights."""
    listed = ", ".join(f"{url} {value[:12]}" for url, value in checksums.items())
    return UserError(
        f"The servers hold different weights: {listed}. Stop them, start them again, and go on with --resume."
    )


def gone(replicas: Sequence[Replica]) -> UserError:
    """What to say when no server is left."""
    listed = "; ".join(f"{one.url}: {one.reason or 'no answer'}" for one in replicas)
    return UserError(
        f"No server can be used any more ({listed}). Start them again (eoh-esopt serve); the run goes on where it "
        "stopped with: eoh-esopt run --resume FOLDER, and --servers where the addresses are others now."
    )


def _plain(name: str) -> str:
    return Path(name).name.casefold()
