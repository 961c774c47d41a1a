"""A scripted model for dry runs and tests: what it writes depends on its weights, which are its updates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.models import chat
from eoh_esopt.models.protocol import Reply, Request
from operators.records import Direction, Update

Writer = Callable[[Request, int], str]
"""The text of a reply, from the request and a number drawn from all it may depend on."""


def by_weight(request: Request, number: int) -> str:
    """A valid program for a function of two numbers, in the form that hosts ask for: another number, another one."""
    name = re.findall(r"def (\w+)\(|function named (\w+)\.", chat.words(request.prompt))[-1]
    return (
        f"{{Weigh the second by {number % 997}.}}\n```python\nimport numpy as np\n"
        f"def {name[0] or name[1]}(first, second):\n    return first + {number % 997} * second\n```\n"
    )


class ScriptedModel:
    """Writes replies from a function. Its weights are the updates it was told to apply.

    Args:
        write: the function.
    """

    parameters = 1

    def __init__(self, write: Writer = by_weight) -> None:
        self._write = write
        self.updates: list[Update] = []
        self.requests: list[Request] = []
        self.batch_sizes: list[int] = []

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        return [list(range(len(requests)))]

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.requests += requests
        self.batch_sizes.append(len(requests))
        return [self._reply(request) for request in requests]

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        return np.array([0.0 if direction is None else direction.seed % 1000 + 1], dtype=np.float32)

    def apply(self, update: Update) -> None:
        self.updates.append(update)

    def checksum(self) -> str:
        return hashlib.sha256(repr(self.updates).encode()).hexdigest()

    def drift(self) -> float:
        return 0.0

    def save(self, folder: Path, *, float32: bool = False) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing to let go of."""

    def describe(self) -> dict[str, Any]:
        return {"model": "scripted", "dtype": "float32"}

    def _reply(self, request: Request) -> Reply:
        text = chat.finished(self._write(request, self._number(request)), False, chat.PLAIN.until(request.stop))
        return Reply(text, len(chat.words(request.prompt)), len(text), False)

    def _number(self, request: Request) -> int:
        place = repr((request.prompt, request.seed, request.direction, self.checksum()))
        return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=6).digest(), "little")
