"""Addresses as people write them, and how long servers are waited for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from random import Random

import pytest

from eoh_esopt.models import endpoint_retries
from eoh_esopt.models.endpoint import normalise_url
from eoh_esopt.models.endpoint_retries import Attempts, Failure, retry_after
from operators.errors import UserError

KEY = "sk-verysecret123"

ADDRESSES = {
    "localhost": "http://localhost/v1",
    "localhost:8000": "http://localhost:8000/v1",
    "127.0.0.1:8000/": "http://127.0.0.1:8000/v1",
    "[::1]:8000": "http://[::1]:8000/v1",
    "10.0.0.7:11434/v1": "http://10.0.0.7:11434/v1",
    "api.openai.com": "https://api.openai.com/v1",
    "api.deepseek.com/v1/": "https://api.deepseek.com/v1",
    " openrouter.ai/api/v1 ": "https://openrouter.ai/api/v1",
    "http://gpu01:8000": "http://gpu01:8000/v1",
    "https://host/v1//": "https://host/v1",
    "http://localhost:8000/v1/chat/completions": "http://localhost:8000/v1",
    "HTTPS://host/openai": "https://host/openai",
}


@pytest.mark.parametrize(("given", "used"), ADDRESSES.items())
def test_addresses_as_people_write_them(given: str, used: str) -> None:
    """Else an endpoint without a scheme or without /v1 cannot be used, and the error does not say why."""
    assert normalise_url(given) == used
    assert normalise_url(used) == used


NO_ADDRESSES = """
http://|ftp://host|http:/localhost:8000|http//localhost|host:port|http://:80/v1|http://[::1|http://a b|host:0
http://host:99999|javascript:alert(1)|http://höst|  |/|
"""


@pytest.mark.parametrize("value", [*NO_ADDRESSES.strip("\n").replace("\n", "|").split("|"), "http://host\n/v1", "h\0"])
def test_what_is_no_address_is_refused_by_name(value: str) -> None:
    """Else a typing error ends in a stack trace of a library, or in retries that cannot succeed."""
    for option in ("--base-url", "--judge-url"):
        with pytest.raises(UserError, match=rf"{option} .* is no address.*http://localhost:8000/v1") as refused:
            normalise_url(value, option)
        assert repr(value) in str(refused.value)


@pytest.mark.parametrize("value", [f"http://me:{KEY}@host/v1", f"me:{KEY}@host:x", f"https://host/v1?key={KEY}"])
def test_secrets_in_addresses_are_refused_and_not_repeated(value: str) -> None:
    """Else a password is written into the run's settings and log."""
    with pytest.raises(UserError) as refused:
        normalise_url(value)
    assert KEY not in str(refused.value)


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
WAITS: dict[str, tuple[dict[str, str], float | None]] = {
    "seconds": ({"retry-after": "7"}, 7.0),
    "milliseconds": ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    "date": ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
    "date gone by": ({"retry-after": format_datetime(NOW - timedelta(hours=1), usegmt=True)}, 0.0),
    "negative": ({"retry-after": "-3"}, None),
    "NaN": ({"retry-after": "nan"}, None),
    "nonsense": ({"retry-after": "soon"}, None),
    "none": ({}, None),
}


@pytest.mark.parametrize(("headers", "seconds"), WAITS.values(), ids=WAITS)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Else a date or a damaged header ends the run, or it waits for years."""
    assert retry_after(headers, NOW) == seconds


def test_waits_grow_and_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server asks a run to wait until tomorrow and gets it, or a busy one is asked again at once."""
    monkeypatch.setattr(endpoint_retries, "FIRST_WAIT_S", 1.0)
    attempts, failure = Attempts(Random(1)), Failure("busy", True)
    waits = [attempts.wait(failure) for _ in range(5)]
    assert waits[-1] is None
    assert all(2**i / 2 <= wait <= 2**i for i, wait in enumerate(waits[:-1]) if wait is not None)
    patient = Attempts(Random(1)).wait(Failure("busy", True, retry_after=86_400.0))
    assert patient is not None
    assert 60 <= patient <= 66
