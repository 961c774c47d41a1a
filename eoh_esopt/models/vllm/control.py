"""Who may do what to a served model's weights, and when: a state machine without HTTP and without vLLM.

closed --init--> ready --perturb--> perturbed --restore--> ready --update--> ready --release--> closed

One client holds the server at a time, one operation runs at a time, and none while replies are being written. A request
that comes again with its token gets its first answer. After an error in an operation the weights are the true ones
again; where even that fails, the state is `broken` until an `init` has loaded the base weights.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eoh_esopt.models.vllm.arguments import ARGUMENTS, Refusal
from eoh_esopt.models.vllm.wire import LEASE_S, NO_UPDATES, PROTOCOL, hash_after
from operators.errors import UserError
from operators.records import Direction

ANSWERS = 256
"""How many answers are kept for requests that come again."""

Arguments = Mapping[str, Any]


class Engine(Protocol):
    """What holds the weights. Each method may raise, at any point of its work."""

    async def open(self, scope: str, restore: str) -> dict[str, Any]:
        """Make the weights of a scope movable, which are the base ones; returns facts about them.

        Raises:
            UserError: they cannot be moved. They are what they were.
        """
        ...

    async def reset(self) -> None:
        """Load the base weights; nothing happens where none were movable yet."""
        ...

    async def perturb(self, seed: int, sigma: float) -> None:
        """Put the live weights under a direction."""
        ...

    async def restore(self) -> None:
        """Make the live weights the true ones; nothing happens where they are."""
        ...

    async def update(self, update: Mapping[str, Any]) -> None:
        """Move the true weights by an update, given by its fields, and the live ones with them."""
        ...

    async def forget(self) -> None:
        """Empty every cache of activations."""
        ...

    async def checksum(self) -> str:
        """sha256 of the true weights."""
        ...

    async def export(self, folder: Path, *, float32: bool) -> None:
        """Write the true weights as a checkpoint."""
        ...


class State(str, Enum):
    """What the weights are."""

    CLOSED = "closed"
    """Nobody holds the server."""
    READY = "ready"
    """The true weights."""
    PERTURBED = "perturbed"
    """Under a direction."""
    BROKEN = "broken"
    """Unknown."""


class _Asked(NamedTuple):
    """A request by its token."""

    session: str
    name: str
    arguments: Arguments
    answer: asyncio.Future[dict[str, Any]]


_STATES = {
    "init": tuple(State),
    "perturb": (State.READY,),
    "restore": (State.READY, State.PERTURBED),
    "update": (State.READY,),
    "checksum": (State.READY,),
    "export": (State.READY,),
    "release": tuple(State),
}


class Control:
    """The weights of one server and the one client that moves them.

    Args:
        engine: holds the weights.
        facts: what the status tells besides the state.
        lease_s: how long a client that is not heard of keeps the server, in seconds.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        engine: Engine,
        facts: Mapping[str, Any] | None = None,
        *,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.boot = secrets.token_hex(8)
        self._engine, self._lease_s, self._clock = engine, lease_s, clock
        self._facts = dict(facts or {})
        self._opened: dict[str, Any] = {}
        self._state = State.CLOSED
        self._direction: Direction | None = None
        self._updates: list[Arguments] = []
        self._hash = NO_UPDATES
        self._moved = False  # whether the true weights may be others than the base ones
        self._holder: str | None = None
        self._seen = 0.0
        self._writing = 0
        self._busy: str | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._asked: OrderedDict[str, _Asked] = OrderedDict()

    @property
    def tag(self) -> str:
        """Stands for what the weights are; requests name the one they are meant for."""
        direction = f"{self._direction.seed}:{self._direction.sigma!r}" if self._direction else "-"
        place = (self.boot, self._state.value, self._opened.get("scope"), self._hash, direction)
        return hashlib.sha256(repr(place).encode()).hexdigest()[:16]

    def status(self, session: str = "") -> dict[str, Any]:
        """Plain data; asking keeps the lease of the client that holds the server."""
        if session and session == self._holder:
            self._seen = self._clock()
        return {
            **self._facts,
            **self._opened,
            "protocol": PROTOCOL,
            "boot": self.boot,
            "state": self._state.value,
            "busy": self._busy,
            "writing": self._writing,
            "step": len(self._updates),
            "updates": self._hash,
            "direction": {"seed": self._direction.seed, "sigma": self._direction.sigma} if self._direction else None,
            "tag": self.tag,
            "yours": bool(session) and session == self._holder,
        }

    async def call(
        self, name: str, arguments: Arguments, *, session: str, token: str, expect: str | None = None
    ) -> dict[str, Any]:
        """Do an operation, once for each token.

        Args:
            name: init, perturb, restore, update, checksum, export or release.
            arguments: as `arguments.ARGUMENTS` reads them.
            session: of the client.
            token: of the request; the same for every attempt at it.
            expect: the tag that the client believes in.

        Returns:
            The status afterwards, and what the operation tells.

        Raises:
            Refusal: nothing was done, or it failed; the weights are the true ones unless the state is `broken`.
        """
        if not session or not token:
            raise Refusal("invalid", "A request needs a session and a token.", 400)
        read = ARGUMENTS[name](arguments)
        known = self._asked.get(token)
        if known is not None:
            if known[:3] != (session, name, read):
                raise Refusal("token", f"The token of this {name} belongs to another request ({known.name}).")
            return await asyncio.shield(known.answer)
        self._admit(name, session, expect)
        self._busy = name
        self._idle.clear()
        answer = asyncio.ensure_future(self._perform(name, read, session))
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # the client may be gone by then
        self._asked[token] = _Asked(session, name, read, answer)
        while len(self._asked) > ANSWERS:
            self._asked.popitem(last=False)
        return await asyncio.shield(answer)

    @asynccontextmanager
    async def writing(self, *, session: str | None = None, expect: str | None = None) -> AsyncIterator[None]:
        """Around every request for a reply: it waits for the operation that runs, and holds the next one off.

        Raises:
            Refusal: the weights are not those the request is meant for.
        """
        while self._busy is not None:
            await self._idle.wait()
        if session is not None and session != self._holder:
            raise Refusal("lease", "Another client holds the server now.")
        self._check_expected(expect)
        self._writing += 1
        try:
            yield
        finally:
            self._writing -= 1
            if session is not None and session == self._holder:
                self._seen = self._clock()

    def _admit(self, name: str, session: str, expect: str | None) -> None:
        """Refuse what may not be done now. Nothing has happened yet, so the same token may be used again."""
        if name == "init":
            self._check_lease(session)
        elif session != self._holder:
            raise Refusal("lease", "Another client holds the server, or the server began anew. Init first.")
        if session == self._holder:
            self._seen = self._clock()
        if self._busy is not None:
            raise Refusal("busy", f"{self._busy} is going on.")
        if self._writing:
            raise Refusal("writing", f"{self._writing} replies are being written: {name} has to wait for them.")
        self._check_expected(expect)
        if self._state not in _STATES[name]:
            under = f", under direction {self._direction.seed}" if self._direction else ""
            raise Refusal("state", f"{name} is not possible: the weights are {self._state.value}{under}.")

    def _check_lease(self, session: str) -> None:
        silent = self._clock() - self._seen
        if self._holder not in (None, session) and silent < self._lease_s:
            raise Refusal(
                "lease",
                f"Another client holds the server and was heard of {silent:.0f} s ago. Stop it, or wait until it has "
                f"been silent for {self._lease_s:.0f} s.",
                wait_s=max(0.0, self._lease_s - silent),
            )

    def _check_expected(self, expect: str | None) -> None:
        if expect is not None and expect != self.tag:
            raise Refusal(
                "expect", f"The weights are not those that the request is meant for ({self._state.value} now)."
            )

    async def _perform(self, name: str, arguments: Arguments, session: str) -> dict[str, Any]:
        try:
            told = await self._operations[name](self, session, **arguments)
        except UserError as error:
            if name == "init":  # refused before anything moved
                self._holder = None
            else:
                await self._recover(name)
            raise Refusal("refused", str(error), 422) from error
        except Exception as error:
            await self._recover(name)
            now = "unknown" if self._state is State.BROKEN else "the true ones"
            raise Refusal("failed", f"{name} failed: {error!r}. The weights are {now}.", 500) from error
        finally:
            self._busy = None
            self._idle.set()
            self._seen = self._clock()
        return {**self.status(session), **told}

    async def _init(self, session: str, scope: str, restore: str) -> dict[str, Any]:
        self._holder, self._state = session, State.CLOSED
        self._updates, self._hash, self._direction = [], NO_UPDATES, None
        await (self._engine.reset() if self._moved else self._engine.restore())
        await self._engine.forget()
        self._moved = False
        if (self._opened.get("scope"), self._opened.get("restore")) != (scope, restore):
            self._opened = {}
            facts = await self._engine.open(scope, restore)
            self._opened = {**facts, "scope": scope, "restore": restore}
            await self._engine.forget()
        self._state = State.READY
        return {}

    async def _perturb(self, session: str, seed: int, sigma: float) -> dict[str, Any]:
        self._direction, self._state = Direction(seed, sigma), State.PERTURBED
        await self._engine.perturb(seed, sigma)
        await self._engine.forget()
        return {}

    async def _restore(self, session: str) -> dict[str, Any]:
        await self._engine.restore()
        await self._engine.forget()
        self._direction, self._state = None, State.READY
        return {}

    async def _update(self, session: str, update: Arguments) -> dict[str, Any]:
        self._moved = True
        await self._engine.update(update)
        await self._engine.forget()
        self._updates.append(update)
        self._hash = hash_after(self._hash, update)
        return {}

    async def _checksum(self, session: str) -> dict[str, Any]:
        return {"checksum": await self._engine.checksum()}

    async def _export(self, session: str, folder: Path, float32: bool) -> dict[str, Any]:
        await self._engine.export(folder, float32=float32)
        return {}

    async def _release(self, session: str) -> dict[str, Any]:
        self._holder = None
        if self._state is State.PERTURBED:
            await self._restore(session)
        if self._state is State.READY:
            self._state = State.CLOSED
        return {}

    _operations: Mapping[str, Callable[..., Awaitable[dict[str, Any]]]] = {
        "init": _init,
        "perturb": _perturb,
        "restore": _restore,
        "update": _update,
        "checksum": _checksum,
        "export": _export,
        "release": _release,
    }

    async def _recover(self, name: str) -> None:
        """Back to the true weights, whatever an operation has left."""
        if name in ("checksum", "export"):
            return  # they read only
        if name == "init":
            self._holder = None
        if name in ("init", "update") or not await self._recovers(self._engine.restore):
            await self._recovers(self._rebuild)
        if name in ("init", "release") and self._state is State.READY:
            self._state = State.CLOSED

    async def _recovers(self, by: Callable[[], Awaitable[None]]) -> bool:
        try:
            await by()
            await self._engine.forget()
        except Exception:  # noqa: BLE001 - whatever it is, the weights are unknown now
            self._state, self._direction, self._moved = State.BROKEN, None, True
            return False
        self._state, self._direction = State.READY, None
        return True

    async def _rebuild(self) -> None:
        """The true weights anew: an update that broke off may have moved some of them."""
        await self._engine.reset()
        for update in self._updates:
            await self._engine.update(update)
