"""A server with movable weights in this process: our gate and control, HTTP, and a model that is a hash function.

It dies and comes back when told to, so that what a client does about it is tested without vLLM.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from fake_engine import FakeEngine

from eoh_esopt.models.vllm.control import Control
from eoh_esopt.models.vllm.routes import Gate
from eoh_esopt.models.vllm.together import Together
from eoh_esopt.models.vllm.wire import REQUEST

KEY = "the-key"
FACTS: dict[str, Any] = {
    "model": "small",
    "asked_for": "./small",
    "served": "small",
    "dtype": "bfloat16",
    "context": 200,
    "ends": [0],
}


class FakeQueue:
    """A queue of requests, by name.

    Attributes:
        begun: for each time that it was let go on, the names that were there.
    """

    def __init__(self) -> None:
        self._there: list[str] = []
        self._goes = asyncio.Event()
        self._goes.set()
        self.begun: list[list[str]] = []

    async def hold(self) -> None:
        self._goes.clear()

    async def begin(self) -> None:
        self.begun.append(list(self._there))
        self._goes.set()

    def waiting(self, batch: str) -> int:
        return sum(batch in name for name in self._there)

    @contextlib.asynccontextmanager
    async def holds(self, name: str) -> AsyncIterator[None]:
        """A request from its arrival to its end."""
        self._there.append(name)
        try:
            await self._goes.wait()
            yield
        finally:
            self._there.remove(name)


class FakeServed:
    """Serves on a free port of this machine until its block ends.

    Args:
        facts: differences from `FACTS`.
        base: stands for the checkpoint; it decides the checksum.
        lease_s: as of the control.

    Attributes:
        delay_s: how long a reply takes.
        before: called with the path before each request; may kill the server or raise OSError to break the connection.
        after: the same after each request, before it is answered.
        calls: the paths that were asked for.
        asked: what replies were asked for.
        rendered: the prompts that were turned into tokens.
    """

    def __init__(self, facts: Mapping[str, Any] | None = None, *, base: str = "", lease_s: float = 30.0) -> None:
        self.facts, self.base, self.lease_s = {**FACTS, **(facts or {})}, base, lease_s
        self.delay_s = 0.0
        self.before: Callable[[str], object] = lambda path: None
        self.after: Callable[[str], object] = lambda path: None
        self.calls: list[str] = []
        self.asked: list[Mapping[str, Any]] = []
        self.rendered: list[Any] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connections: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Begin anew, with the base weights and another boot id, at the same address."""
        self.engine = _Engine(self.base)
        self.control = Control(self.engine, self.facts, lease_s=self.lease_s)
        self.queue = FakeQueue()
        together = Together(self.queue)
        self._gate = Gate(self._app, control=self.control, key=KEY, render=self._render, together=together)
        self._call(self._listen())

    def die(self) -> None:
        """Break all connections and answer no more. May be called from the server's own thread."""
        if threading.current_thread() is self._thread:
            self._stop()
        else:
            self._call(self._stopped())

    def __enter__(self) -> FakeServed:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _call(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stopped(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await self._request(reader, writer)
        self._connections.discard(writer)
        writer.transport.abort()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = [line.split(": ", 1) for line in head[1:] if line]
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.calls.append(path)
        self.before(path)
        sent: list[Mapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": path, "headers": listed}
        await self._gate(scope, receive, send)
        self.after(path)
        content = b"".join(message.get("body", b"") for message in sent)
        answer = [
            f"HTTP/1.1 {sent[0]['status']} -",
            "content-type: application/json",
            f"content-length: {len(content)}",
        ]
        writer.write("\r\n".join([*answer, "", ""]).encode() + content)
        await writer.drain()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        status, answer = 200, {}
        if scope["path"] == "/v1/completions":
            async with self.queue.holds(dict(scope["headers"]).get(REQUEST.encode(), b"").decode()):
                await asyncio.sleep(self.delay_s)
            answer = self._completion(json.loads((await receive())["body"]))
        elif scope["path"] != "/health":
            status, answer = 404, {"error": {"message": "no such path", "code": 404}}
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _completion(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(asked)
        drawn = _hashed(self.engine.live, asked["prompt"], asked.get("seed"), asked.get("temperature"))
        choice: dict[str, Any] = {"text": f" {drawn[:8]}\nmore", "finish_reason": "stop"}
        if asked.get("prompt_logprobs") is not None:
            entries = [
                {str(token): {"logprob": -int(_hashed(self.engine.live, i)[:4], 16) / 65536}}
                for i, token in enumerate(asked["prompt"])
            ]
            choice["prompt_logprobs"] = [None, *entries[1:]]
        usage = {"prompt_tokens": len(asked["prompt"]), "completion_tokens": min(8, asked["max_tokens"])}
        return {"choices": [choice], "usage": usage}

    def _render(self, turns: Any, settings: Any) -> list[tuple[list[int], str]]:
        self.rendered += [prompt for prompt, _ in turns]
        return [([ord(character) for character in f"<{prompt}>{prefill}"], "") for prompt, prefill in turns]


class _Engine(FakeEngine):
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base

    async def checksum(self) -> str:
        return _hashed(self._base, await super().checksum())


def _hashed(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
