"""A language model that somebody else serves behind an OpenAI-compatible API: it writes, and its weights stay."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn, cast
from urllib.parse import quote

import numpy as np
import openai
from numpy.typing import NDArray
from openai.types.chat import ChatCompletionMessageParam

from eoh_esopt.models import chat
from eoh_esopt.models.endpoint import (
    API_KEY,
    ENDPOINT,
    FROZEN,
    NO_KEY,
    PartialReplies,
    api_key,
    normalise_url,
    without_key,
)
from eoh_esopt.models.endpoint_retries import FAILURES, Attempts, Failure, MalformedReplyError, failure_of
from eoh_esopt.models.protocol import Reply, Request, Sampling
from operators.errors import UserError
from operators.records import Direction, Update

LONGEST_TEXT = 1_000_000
_CONNECT_S = 10.0
_LISTED = 10
_SETTINGS = (
    *("top_k", "seed", "max_tokens", "temperature", "top_p"),
    *("presence_penalty", "stop", "chat_template_kwargs"),
)
"""What some servers refuse. top_k is the one that no standard names."""

_TOO_LONG = re.compile(r"context.{0,9}(length|window|size)|maximum (context|model) len|too many (input )?tokens", re.I)


class OpenAIModel:
    """A chat model behind an endpoint.

    Args:
        name: the model's name there.
        base_url: the endpoint's address, see `normalise_url`; None for a model that is only known from recordings.
        sampling: how tokens are drawn.
        timeout_s: limit of one request as a whole, in seconds.
        max_batch: most requests at once.
        settings: how conversations are held; whether the model thinks is left to the endpoint unless it is to.

    Raises:
        UserError: the address cannot be used, or the key holds what no header can carry.
    """

    parameters = None

    def __init__(
        self,
        name: str,
        base_url: str | None,
        *,
        sampling: Sampling,
        timeout_s: float = 120.0,
        max_batch: int = 64,
        settings: chat.ChatSettings = chat.PLAIN,
    ) -> None:
        self._name = name
        self._url = None if base_url is None else normalise_url(base_url)
        self._sampling = sampling
        self._timeout_s = timeout_s
        self._max_batch = max_batch
        self._chat = settings
        self._jitter = random.Random()
        self._refused: frozenset[str] = frozenset()
        self._answered = False
        api_key()

    @property
    def refused(self) -> list[str]:
        """Settings that the endpoint does not take and that are no longer sent."""
        return sorted(self._refused)

    def check(self) -> None:
        """Ask for a word, to see that the address, the key and the name are right.

        Raises:
            UserError: they are not, or the endpoint does not answer.
        """
        self.generate([Request("Answer with the word: ready.", "", 0)])

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """As many requests at once as the user allows."""
        numbers = list(range(len(requests)))
        return [numbers[at : at + self._max_batch] for at in range(0, len(numbers), self._max_batch)]

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch, all asked for at once.

        Raises:
            PartialReplies: some requests were not answered, after a bounded number of attempts each.
            UserError: a reply is begun, or to be written under a direction.
        """
        if any(request.prefill for request in requests):
            raise UserError("An endpoint does not go on with a reply that is begun already: use --prefill none.")
        if any(request.direction is not None for request in requests):
            raise UserError(FROZEN)
        results = asyncio.run(self._ask_all(requests))
        received = {i: one for i, one in enumerate(results) if isinstance(one, Reply)}
        failed = [one for one in results if not isinstance(one, Reply)]
        for error in failed:
            if not isinstance(error, UserError):
                raise error
        if failed:
            raise PartialReplies(str(failed[0]), received) from failed[0]
        return list(received.values())

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Raises UserError: nobody may look at the weights."""
        raise UserError(FROZEN)

    def apply(self, update: Update) -> None:
        """Raises UserError: the weights stay."""
        raise UserError(FROZEN)

    def checksum(self) -> str:
        """The model's name in place of a hash."""
        return ENDPOINT + quote(self._name, safe="/:@+")

    def drift(self) -> float:
        """Nothing moves."""
        return 0.0

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Raises UserError: the weights are elsewhere."""
        raise UserError(f"{FROZEN} There is nothing to save.")

    def describe(self) -> dict[str, Any]:
        """What a history states of the model."""
        return {
            "model": self._name,
            "backend": "openai",
            "parameters": None,
            "dtype": "as served",
            "device": self._url or "recorded",
            "sampling": asdict(self._sampling),
            "refused": self.refused,
        }

    def close(self) -> None:
        """Connections last for one batch: there is none to close."""

    async def _ask_all(self, requests: Sequence[Request]) -> list[Reply | BaseException]:
        async with self._client() as client:
            return await asyncio.gather(*(self._ask(client, one) for one in requests), return_exceptions=True)

    def _client(self) -> openai.AsyncOpenAI:
        if self._url is None:
            raise UserError("There is no endpoint to ask: give --base-url.")
        try:
            return openai.AsyncOpenAI(
                api_key=api_key(),
                base_url=self._url,
                timeout=openai.Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s)),
                max_retries=0,
            )
        except (openai.OpenAIError, ImportError, ValueError) as error:  # such as a proxy of a kind it does not know
            raise UserError(f"Cannot reach {self._url}: {without_key(str(error))}") from error

    async def _ask(self, client: openai.AsyncOpenAI, request: Request) -> Reply:
        """One reply; what the server refuses is left out, and what may pass is tried again."""
        attempts = Attempts(self._jitter)
        refused = self._refused
        while True:
            try:
                reply = await self._ask_once(client, request, refused)
            except FAILURES as error:
                failure = failure_of(error, self._timeout_s)
            else:
                self._refused |= refused
                self._answered = True
                return reply
            if failure.status in (400, 422):
                if self._answered and _TOO_LONG.search(failure.text):
                    return Reply("", 0, 0, truncated=True)  # no room is left for a reply, as with a model of our own
                name = _refused_setting(failure.text, self._settings(request, refused))
                if name is not None:
                    refused |= {name}
                    continue
            wait = attempts.wait(failure)
            if wait is None:
                await self._give_up(client, failure, attempts.made)
            await asyncio.sleep(wait)

    async def _ask_once(self, client: openai.AsyncOpenAI, request: Request, refused: frozenset[str]) -> Reply:
        asked = client.chat.completions.with_raw_response.create(
            model=self._name,
            messages=cast("list[ChatCompletionMessageParam]", chat.messages(request.prompt, self._chat.system)),
            extra_body=self._settings(request, refused),
        )
        raw = await asyncio.wait_for(asked, self._timeout_s)  # the client's own limit is one of silence
        return _cut(read_reply(raw.content), self._chat.until(request.stop))

    def _settings(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "top_k": self._sampling.top_k,
            "seed": request.seed % 2**63,
            "max_tokens": request.limit(self._sampling.max_new_tokens),
        }
        if self._sampling.presence_penalty:
            settings["presence_penalty"] = self._sampling.presence_penalty
        if stop := self._chat.until(request.stop).stop:
            settings["stop"] = stop
        if self._chat.thinking:
            settings["chat_template_kwargs"] = {"enable_thinking": True}
        if "max_tokens" in refused:  # its name for models that reason
            settings["max_completion_tokens"] = settings["max_tokens"]
        return {name: value for name, value in settings.items() if name not in refused}

    async def _give_up(self, client: openai.AsyncOpenAI, failure: Failure, attempts: int) -> NoReturn:
        what = without_key(failure.text)
        if failure.retried:
            times = "once" if attempts == 1 else f"{attempts} times"
            raise UserError(
                f"The endpoint {self._url} does not answer (asked {times}): {what}. See that the server runs"
                f"{' and how long it takes (--request-timeout)' if failure.timed_out else ''}; "
                "a run that has begun goes on with --resume."
            )
        if failure.status == 401:
            key = "is not the right key" if api_key() != NO_KEY else "is not set"
            raise UserError(f"The endpoint {self._url} wants a key, and {API_KEY} {key} ({what}). Set {API_KEY}.")
        if failure.status == 404:
            raise UserError(
                f"The endpoint {self._url} has no model {self._name!r}, or no API at this path ({what}). "
                f"{await self._served(client)}"
            )
        raise UserError(
            f"The endpoint {self._url} refuses a request to {self._name!r}: {what}. Mend what it says; "
            "a run that has begun goes on with --resume."
        )

    async def _served(self, client: openai.AsyncOpenAI) -> str:
        """The models that the endpoint lists, as advice."""
        try:
            raw = await asyncio.wait_for(client.models.with_raw_response.list(), min(_CONNECT_S, self._timeout_s))
            listed = json.loads(raw.content)["data"]
            names = [one["id"] for one in listed if isinstance(one["id"], str)]
        except (*FAILURES, ValueError, RecursionError, LookupError, TypeError):
            names = []
        if not names:
            return "Check --model and --base-url."
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"Choose one of its models by --model: {without_key(', '.join(names[:_LISTED]))}{more}."


def _refused_setting(text: str, settings: Mapping[str, Any]) -> str | None:
    """Which of the settings that were sent a server's refusal names; top_k where it names none."""
    sent = [name for name in _SETTINGS if name in settings]
    named = [name for name in sent if re.search(rf"\b{name}\b", text)]
    return next(iter([*named, *sent[: sent[:1] == ["top_k"]]]), None)


def read_reply(body: bytes) -> Reply:
    """What a chat completion says.

    A reply without content, such as one that holds only its reasoning, is an empty one; parts are joined.

    Raises:
        MalformedReplyError: it is no chat completion.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedReplyError(f"what it sends is no JSON ({_head(body)})") from error
    match answer:
        case {"choices": [{"message": dict() as message, **choice}, *_]}:
            text = _text(message.get("content"))
        case _:
            raise MalformedReplyError(f"what it sends holds no reply ({_head(body)})")
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        text[:LONGEST_TEXT],
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        truncated=choice.get("finish_reason") == "length" or len(text) > LONGEST_TEXT,
    )


def _cut(reply: Reply, settings: chat.ChatSettings) -> Reply:
    """The reply up to the first stop string, wherever the server has ended it."""
    text = chat.finished(reply.text, False, settings)
    return replace(reply, text=text, truncated=reply.truncated and text == reply.text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _head(body: bytes) -> str:
    return body[:120].decode("utf-8", "replace") or "nothing"
