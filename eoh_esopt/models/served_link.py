"""One server with movable weights, asked over HTTP: limits of time, attempts with the same token, refusals as data."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import openai

from eoh_esopt.models.chat import PLAIN, ChatSettings, as_json
from eoh_esopt.models.protocol import Prompt
from eoh_esopt.models.vllm.together import Place
from eoh_esopt.models.vllm.wire import API_KEY, BATCH, EXPECT, PREFIX, REQUEST, SESSION, TOKEN, client_key
from operators.errors import UserError

ATTEMPTS = 3
FIRST_WAIT_S = 0.25
STATUS_S = 10.0
"""Limit of a question that no work stands behind."""
OPERATION_S = 1800.0
"""Limit of one operation on the weights: checksums and exports of large models take minutes."""
QUEUE_S = 60.0
"""How long an operation is asked for again while replies that were given up are still being written."""


class LinkDown(Exception):
    """The server cannot be used just now; the message says why."""


class Unusable(LinkDown):
    """It will not be usable until somebody mends it: another key, another model, no server of ours."""


class Declined(Exception):
    """The server answers, and does not do it.

    Args:
        code: as in `arguments.Refusal`.
        message: the server's own words.
        wait_s: after how many seconds another attempt may succeed, where it said so.
    """

    def __init__(self, code: str, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.wait_s = code, wait_s


class Link:
    """A server as one client asks it. Every method raises LinkDown and, where the server answers so, Declined.

    Args:
        url: scheme, host and port.
        session: stands for the client, the same for all its servers.
        timeout_s: limit of one reply, in seconds.
        connections: most requests at once.

    Raises:
        UserError: the key cannot be sent.
    """

    def __init__(self, url: str, session: str, *, timeout_s: float, connections: int) -> None:
        self.url = url
        self._session, self._timeout_s = session, timeout_s
        self._keyed = bool(client_key(url))
        self._places = asyncio.Semaphore(connections)
        self._client = openai.AsyncOpenAI(
            api_key=client_key(url) or "none",
            base_url=url,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False),  # no proxy stands before these
        )

    async def status(self) -> dict[str, Any]:
        """What the server is at; asking keeps the lease."""
        return await self._ask(f"{PREFIX}status", None, {SESSION: self._session}, STATUS_S)

    async def call(self, name: str, *, expect: str | None = None, **fields: Any) -> dict[str, Any]:
        """An operation on the weights, done once however often it is asked for."""
        headers = {SESSION: self._session, TOKEN: secrets.token_hex(16)}
        if expect is not None:
            headers[EXPECT] = expect
        until = asyncio.get_running_loop().time() + QUEUE_S
        pause = FIRST_WAIT_S / 4
        while True:
            try:
                return await self._ask_again(f"{PREFIX}{name}", fields, headers, OPERATION_S)
            except Declined as refusal:
                if refusal.code not in ("busy", "writing") or asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)

    async def render(
        self, turns: Sequence[tuple[Prompt, str]], settings: ChatSettings = PLAIN
    ) -> list[tuple[list[int], str]]:
        """(Prompt, beginning of the reply) pairs as conversations: tokens, and the tag that has begun a thought."""
        pairs = [[as_json(prompt), prefill] for prompt, prefill in turns]
        fields = {"turns": pairs, "system": settings.system, "thinking": settings.thinking}
        answer = await self._ask_again(f"{PREFIX}render", fields, {}, self._timeout_s)
        return [(turn["tokens"], turn["opening"]) for turn in answer["turns"]]

    async def complete(self, fields: Mapping[str, Any], expect: str, place: Place | None = None) -> dict[str, Any]:
        """A completion, written under the weights that the tag stands for, and at its place in a batch."""
        async with self._places:
            headers = {SESSION: self._session, EXPECT: expect}
            if place is not None:
                headers |= {BATCH: str(place), REQUEST: f"{place.batch}-{place.index}"}
            return await self._ask_again("/v1/completions", fields, headers, self._timeout_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _ask_again(
        self, path: str, fields: Mapping[str, Any], headers: Mapping[str, str], limit_s: float
    ) -> dict[str, Any]:
        """Ask, and ask again after a failed connection."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._ask(path, fields, headers, limit_s)
            except _Unconnected:
                await asyncio.sleep(FIRST_WAIT_S * 2 ** (attempt - 1))
        return await self._ask(path, fields, headers, limit_s)

    async def _ask(
        self, path: str, fields: Mapping[str, Any] | None, headers: Mapping[str, str], limit_s: float
    ) -> dict[str, Any]:
        options: Any = {"headers": dict(headers), "timeout": openai.Timeout(limit_s, connect=min(10.0, limit_s))}
        if fields is None:
            asked = self._client.get(path, cast_to=object, options=options)
        else:
            asked = self._client.post(path, cast_to=object, body=dict(fields), options=options)
        try:
            answer = await asyncio.wait_for(asked, limit_s)
        except openai.APIStatusError as error:
            raise self._refusal(error) from error
        except (openai.APITimeoutError, asyncio.TimeoutError) as error:
            raise LinkDown(f"no answer within {limit_s:g} s") from error
        except openai.APIConnectionError as error:
            raise _Unconnected(f"the connection failed ({error.__cause__ or error.message})") from error
        except (openai.APIError, ValueError) as error:
            raise LinkDown(f"what it sends cannot be read ({error})") from error
        if not isinstance(answer, dict):
            raise Unusable(f"The server {self.url} is none of ours: start it by `eoh-esopt serve`.")
        return answer

    def _refusal(self, error: openai.APIStatusError) -> Exception:
        body = error.body if isinstance(error.body, dict) else {}
        code, message = body.get("code"), " ".join(str(body.get("message") or error.message).split())[:500]
        if error.status_code == 401:
            what = "does not take the key" if self._keyed else "wants a key"
            return Unusable(f"The server {self.url} {what}. Set {API_KEY} to the one it was started with.")
        if isinstance(code, str) and code.isalpha():  # vLLM's own are numbers
            wait = body.get("wait_s")
            return Declined(code, message, wait if isinstance(wait, (int, float)) else None)
        if error.status_code >= 500:
            return LinkDown(f"HTTP {error.status_code}: {message}")
        if error.status_code == 404:
            return Unusable(f"The server {self.url} has no {error.request.url.path}: start it by `eoh-esopt serve`.")
        return UserError(f"The server {self.url} refuses a request (HTTP {error.status_code}): {message}")


class _Unconnected(LinkDown):
    """No connection, or one that broke."""
