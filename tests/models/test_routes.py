"""The gate before a server's routes, over real HTTP: the key, strict requests, numbers of 64 bits."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from fake_served import KEY, FakeServed

from eoh_esopt.models.vllm import routes
from eoh_esopt.models.vllm.wire import EXPECT, SESSION, TOKEN


@pytest.fixture
def server() -> Iterator[FakeServed]:
    with FakeServed() as server:
        yield server


def ask(
    server: FakeServed, path: str, body: bytes | None = None, *, key: str | None = f"Bearer {KEY}", **headers: str
) -> tuple[int, Any]:
    """Status and answer; a body makes it a POST."""
    given = {"Authorization": key} if key is not None else {}
    names = {"session": SESSION, "token": TOKEN, "expect": EXPECT}
    given |= {names[name]: value for name, value in headers.items()}
    request = urllib.request.Request(server.url + path, body, given)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    "key", [None, "", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", f"bearer  {KEY}"]
)
@pytest.mark.parametrize(
    "path", ["/eoh/status", "/eoh/init", "/v1/completions", "/invocations", "/metrics", "/nothing"]
)
def test_nothing_but_the_health_is_told_without_the_key(server: FakeServed, path: str, key: str | None) -> None:
    """Whoever reaches the port could read, use and change the model."""
    status, answer = ask(server, path, b"{}" if path in ("/eoh/init", "/v1/completions") else None, key=key)
    assert (status, answer["error"]["code"]) == (401, "unauthorized")
    assert KEY not in json.dumps(answer)
    assert ask(server, "/health", key=key)[0] == 200
    assert server.control.status()["state"] == "closed"


def test_the_key_opens_and_seeds_keep_their_64_bits(server: FakeServed) -> None:
    """A seed that passes through a float loses its last bits, and with them the direction."""
    assert ask(server, "/eoh/status", key=f"bearer {KEY}")[1]["state"] == "closed"
    body = json.dumps({"scope": "full", "restore": "exact"}).encode()
    assert ask(server, "/eoh/init", body, session="me", token="1")[1]["state"] == "ready"
    body = json.dumps({"seed": 2**64 - 1, "sigma": 1e-3}).encode()
    status, answer = ask(server, "/eoh/perturb", body, session="me", token="2")
    assert (status, answer["direction"]["seed"]) == (200, 2**64 - 1)
    assert server.engine.direction == (2**64 - 1, 1e-3)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/eoh/init", b"{", 400, "invalid"),
        ("/eoh/init", b"[" * 100_000, 400, "invalid"),
        ("/eoh/init", b"[]", 400, "invalid"),
        ("/eoh/init", b"{}", 400, "invalid"),
        ("/eoh/init", b"\xff\xfe", 400, "invalid"),
        ("/eoh/perturb", b'{"seed": 1, "sigma": 1}', 409, "lease"),
        ("/eoh/none", b"{}", 404, "unknown"),
        ("/eoh/status", b"{}", 404, "unknown"),
        ("/eoh/perturb", None, 405, "unknown"),
        ("/eoh/render", b'{"turns": [["a"]]}', 400, "invalid"),
        ("/eoh/render", b"{}", 400, "invalid"),
        ("/eoh/render", b'{"turns": [[3, ""]]}', 400, "invalid"),
        ("/eoh/render", b'{"turns": [[[{"role": "user"}], ""]]}', 400, "invalid"),
    ],
)
def test_broken_requests_get_an_answer_that_says_so(
    server: FakeServed, path: str, body: bytes | None, status: int, code: str
) -> None:
    """A client of another release, or a person with curl, would get a traceback or nothing."""
    got, answer = ask(server, path, body, session="me", token="1")
    assert (got, answer["error"]["code"]) == (status, code)
    assert answer["error"]["message"]
    assert ask(server, "/eoh/status")[0] == 200


def test_endless_requests_are_cut_off(server: FakeServed, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request could fill the server's memory."""
    monkeypatch.setattr(routes, "LONGEST_BODY", 100)
    assert ask(server, "/eoh/render", b" " * 200)[0] == 413


def test_prompts_become_tokens_by_the_servers_own_tokenizer(server: FakeServed) -> None:
    """A client's tokenizer may be another than the one that the model is served with."""
    body = json.dumps({"turns": [["ab", ""], ["a", "b"]]}).encode()
    assert ask(server, "/eoh/render", body)[1] == {
        "turns": [{"tokens": [60, 97, 98, 62], "opening": ""}, {"tokens": [60, 97, 62, 98], "opening": ""}]
    }


def test_replies_meant_for_other_weights_are_not_written(server: FakeServed) -> None:
    """After a restart the base model would answer in the adapted one's name."""
    body = json.dumps({"prompt": [1], "max_tokens": 1}).encode()
    assert ask(server, "/v1/completions", body)[0] == 200
    assert ask(server, "/v1/completions", body, expect="0" * 16)[1]["error"]["code"] == "expect"
    assert ask(server, "/v1/completions", body, session="me")[1]["error"]["code"] == "lease"
    assert server.control.status()["writing"] == 0


def test_other_kinds_of_connections_are_closed(server: FakeServed) -> None:
    """A websocket would go around the key."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    asyncio.run(server._gate({"type": "websocket", "path": "/v1/realtime", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
