"""What the tests of models behind servers share: servers in this process, requests, and an impatient client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_served import KEY, FakeServed

from eoh_esopt.models import served_fleet, served_link
from eoh_esopt.models.protocol import Request, Sampling
from eoh_esopt.models.served_model import ServedModel
from eoh_esopt.models.vllm.wire import API_KEY
from operators.records import Direction, Update

Servers = list[FakeServed]
DIRECTIONS = [Direction(2**64 - 1 - i, 0.5) for i in range(6)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY, KEY)
    monkeypatch.setattr(served_fleet, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(served_link, "FIRST_WAIT_S", 0.01)


@pytest.fixture
def servers() -> Iterator[Servers]:
    with FakeServed() as one, FakeServed() as two, FakeServed() as three:
        yield [one, two, three]


@contextmanager
def opened(*servers: FakeServed, **settings: Any) -> Iterator[ServedModel]:
    """A model on these servers; what it says goes to `said`."""
    values: dict[str, Any] = {"scope": "full", "sampling": Sampling(max_new_tokens=20), "max_batch": 4}
    values |= {"model": "small", "patience_s": 5.0, **settings}
    model = ServedModel(",".join(server.url for server in servers), **values)
    try:
        yield model
    finally:
        model.close()


def an_update(step: int) -> Update:
    return Update(step, (step, 2**64 - 1), (1.0, 0.25), (1.0, -1.0), 0.1, 0.01)


def requests(directions: list[Direction | None], each: int = 3) -> list[Request]:
    return [
        Request(f"prompt {i}", "def f():\n" if i % 2 else "", 2**64 - 1 - i, direction)
        for i, direction in enumerate(direction for direction in directions for _ in range(each))
    ]


def soon(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
