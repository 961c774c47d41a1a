"""What a failed request means: whether it is tried again, when, and how often."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import openai

ATTEMPTS = 5
TIMEOUTS = 2
"""A server that did not answer twice in the time allowed is not waited for a third time."""

FIRST_WAIT_S = 0.5
LONGEST_BACKOFF_S = 16.0
LONGEST_WAIT_S = 60.0
"""Where a server asks for more patience than this, it is asked again after this time all the same."""

_RETRIED = (408, 409, 429)
_NO_QUOTA = "insufficient_quota"


class MalformedReplyError(Exception):
    """A server said that all is well, and what it sent is no reply."""


FAILURES = (openai.APIError, asyncio.TimeoutError, MalformedReplyError)
"""What one request may end in, other than a reply."""


@dataclass(frozen=True)
class Failure:
    """One failed request.

    Attributes:
        text: what happened, in a few words; may hold text of the server.
        retried: whether trying again may help.
        status: the HTTP status, where there was one.
        timed_out: whether no answer came in time.
        retry_after: seconds the server asked to wait for.
    """

    text: str
    retried: bool
    status: int | None = None
    timed_out: bool = False
    retry_after: float | None = None


def failure_of(error: BaseException, timeout_s: float) -> Failure:
    """What one of `FAILURES` means."""
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        retried = (status in _RETRIED or status >= 500) and error.code != _NO_QUOTA
        wait = retry_after(error.response.headers, datetime.now(timezone.utc))
        return Failure(f"HTTP {status}: {_said(error)}", retried, status, retry_after=wait)
    if isinstance(error, (openai.APITimeoutError, asyncio.TimeoutError)):
        return Failure(f"no reply within {timeout_s:g} seconds", True, timed_out=True)
    if isinstance(error, openai.APIConnectionError):
        return Failure(f"the connection failed ({error.__cause__ or error.message})", True)
    return Failure(str(error), isinstance(error, MalformedReplyError))


def _said(error: openai.APIStatusError) -> str:
    """The server's own words: its message, else all that it sent."""
    match error.body:
        case {"message": str() as message} if message:
            return message
        case str() as text:
            return text or "without a word"
        case None:
            return "without a word"
        case body:
            return json.dumps(body)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server's answer asks to wait for; None where it does not say, or nothing that can be read."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - now).total_seconds())


class Attempts:
    """Counts the attempts at one request.

    Args:
        generator: of the jitter, which keeps requests that failed together from coming back together.
    """

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self.made = 0
        self._timeouts = 0

    def wait(self, failure: Failure) -> float | None:
        """Seconds to wait for after another failure; None when it is time to give up."""
        self.made += 1
        self._timeouts += failure.timed_out
        if not failure.retried or self.made >= ATTEMPTS or self._timeouts >= TIMEOUTS:
            return None
        if failure.retry_after is not None:
            return min(failure.retry_after, LONGEST_WAIT_S) * self._generator.uniform(1.0, 1.1)
        backoff = min(FIRST_WAIT_S * 2.0 ** (self.made - 1), LONGEST_BACKOFF_S)
        return backoff * self._generator.uniform(0.5, 1.0)
