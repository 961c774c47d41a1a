"""Candidates that reach an evaluator one after another, from another thread than the one that evaluates."""

from __future__ import annotations

import os
import select
from collections import deque


class Feed:
    """What `Evaluator.evaluate_arriving` takes its candidates from. One thread puts them in, another takes them out."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._open = True
        self._dropped = False
        self._wakes, self._wake = os.pipe()

    def put(self, code: str) -> None:
        """One more candidate."""
        self._waiting.append(code)
        os.write(self._wake, b".")

    def close(self) -> None:
        """No more will come."""
        self._open = False
        os.write(self._wake, b".")

    def drop(self) -> None:
        """Nobody waits for outcomes any more: the evaluation ends at once."""
        self._dropped = True
        os.write(self._wake, b".")

    @property
    def open(self) -> bool:
        """Whether more may come, or some were not taken yet."""
        return not self._dropped and (self._open or bool(self._waiting))

    @property
    def dropped(self) -> bool:
        """Whether `drop` was called."""
        return self._dropped

    def take(self) -> list[str]:
        """The candidates that came since the last call, in the order they came."""
        while select.select([self._wakes], [], [], 0)[0]:
            os.read(self._wakes, 4096)
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def fileno(self) -> int:
        """The descriptor that becomes readable when something has happened."""
        return self._wakes

    def release(self) -> None:
        """Close the descriptors, once both threads are done."""
        os.close(self._wakes)
        os.close(self._wake)
