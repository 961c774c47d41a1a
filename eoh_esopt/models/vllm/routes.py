"""The gate before vLLM's own routes: the key for all of them, our few, and the count of replies being written.

It is plain ASGI, so it stands before any application and is tested without one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from eoh_esopt.models.chat import ChatSettings, from_json
from eoh_esopt.models.protocol import Prompt
from eoh_esopt.models.vllm.arguments import ARGUMENTS, Refusal
from eoh_esopt.models.vllm.control import Control
from eoh_esopt.models.vllm.together import Together, read_place
from eoh_esopt.models.vllm.wire import BATCH, EXPECT, PREFIX, SESSION, TOKEN
from operators.errors import UserError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Render = Callable[[Sequence[tuple[Prompt, str]], ChatSettings], list[tuple[list[int], str]]]
"""(Prompt, beginning of the reply) pairs as conversations: their tokens, and the tag that has begun a thought."""

LONGEST_BODY = 64 << 20
_OPEN = ("/health", "/ping")
"""Whether the server lives is told to everybody."""
_HARMLESS = ("/tokenize", "/detokenize")


class Gate:
    """Stands before an application.

    Args:
        app: what is behind it.
        control: of the weights.
        key: that every request needs as `Authorization: Bearer KEY`.
        render: turns prompts into tokens.
        together: lets the requests of a batch begin together.
    """

    def __init__(self, app: App, *, control: Control, key: str, render: Render, together: Together) -> None:
        self._app, self._control, self._render, self._together = app, control, render, together
        self._key = hashlib.sha256(key.encode()).digest()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            if path not in _OPEN:
                self._check_key(headers.get("authorization", ""))
            if path.startswith(PREFIX):
                answer = await self._answer(scope["method"], path.removeprefix(PREFIX), headers, receive)
                await _send(send, 200, answer)
            elif scope["method"] == "GET" or path in _OPEN + _HARMLESS:
                await self._app(scope, receive, send)
            else:
                await self._write(headers, scope, receive, send)
        except Refusal as refusal:
            await _send(send, refusal.status, refusal.as_answer())

    def _check_key(self, authorization: str) -> None:
        scheme, _, key = authorization.partition(" ")
        given = hashlib.sha256(key.encode("latin-1")).digest()
        if not secrets.compare_digest(given, self._key) or scheme.lower() != "bearer":
            raise Refusal("unauthorized", "The key is missing or wrong: send it as 'Authorization: Bearer KEY'.", 401)

    async def _write(
        self, headers: Mapping[str, str], scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Let the application write a reply."""
        async with AsyncExitStack() as around:
            await around.enter_async_context(
                self._control.writing(session=headers.get(SESSION), expect=headers.get(EXPECT))
            )
            if BATCH in headers:
                await around.enter_async_context(self._together.admitted(read_place(headers[BATCH])))
            await self._app(scope, receive, send)

    async def _answer(self, method: str, name: str, headers: Mapping[str, str], receive: Receive) -> dict[str, Any]:
        if method == "GET" and name == "status":
            return self._control.status(headers.get(SESSION, ""))
        if name not in (*ARGUMENTS, "render"):
            raise Refusal("unknown", f"There is no {PREFIX}{name}.", 404)
        if method != "POST":
            raise Refusal("unknown", f"{PREFIX}{name} takes POST.", 405)
        fields = _fields(await _body(receive))
        if name == "render":
            return await self._rendered(fields)
        session, token = headers.get(SESSION, ""), headers.get(TOKEN, "")
        return await self._control.call(name, fields, session=session, token=token, expect=headers.get(EXPECT))

    async def _rendered(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            turns = [(from_json(prompt), str(prefill)) for prompt, prefill in fields["turns"]]
            settings = ChatSettings(system=str(fields.get("system", "")), thinking=bool(fields.get("thinking", False)))
            rendered = await asyncio.to_thread(self._render, turns, settings)
            return {"turns": [{"tokens": tokens, "opening": opening} for tokens, opening in rendered]}
        except (KeyError, TypeError, ValueError) as error:
            raise Refusal("invalid", f"turns have to be pairs of prompt and beginning: {error!r}.", 400) from error
        except UserError as error:
            raise Refusal("refused", str(error), 422) from error


async def _body(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal("invalid", "The request broke off.", 400)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LONGEST_BODY:
            raise Refusal("invalid", f"A request may have {LONGEST_BODY} bytes at most.", 413)
        if not message.get("more_body"):
            return b"".join(parts)


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refusal("invalid", "The request is no JSON.", 400) from error
    if not isinstance(fields, dict):
        raise Refusal("invalid", "The request has to be a JSON object.", 400)
    return fields


async def _send(send: Send, status: int, answer: Mapping[str, Any]) -> None:
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
