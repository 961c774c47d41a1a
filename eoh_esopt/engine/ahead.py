"""Evaluation ahead of time: candidates run while the model writes the next ones of their batch.

The evaluator works in a thread of its own, which mostly waits for processes. Outcomes are handed over only when all
candidates of the batch are written, so what is logged, and in which order, does not depend on who was faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Protocol, runtime_checkable

from eoh_esopt.sandbox.feed import Feed
from operators.records import Outcome


class Evaluates(Protocol):
    """Runs candidates in isolation and scores them."""

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """(position, outcome) of each code as it finishes."""
        ...


@runtime_checkable
class EvaluatesArriving(Evaluates, Protocol):
    """Also takes candidates that come while others run."""

    def evaluate_arriving(self, feed: Feed) -> Iterator[tuple[int, Outcome]]:
        """As `evaluate`, until the feed is closed or dropped."""
        ...


class Ahead:
    """Candidates of one batch on their way through an evaluator. A context manager; leaving it ends what still runs.

    Args:
        evaluator: one that takes whole batches only gets them when all candidates are there.
    """

    def __init__(self, evaluator: Evaluates) -> None:
        self._evaluator = evaluator
        self._candidates: list[int] = []
        self._codes: list[str] = []
        self._feed = Feed() if isinstance(evaluator, EvaluatesArriving) else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evaluate-ahead")
        self._work: Future[None] | None = None
        self._finished: SimpleQueue[tuple[int, Outcome] | None] = SimpleQueue()

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._feed is not None:
            self._feed.drop()
            self._thread.shutdown()
            self._feed.release()

    def add(self, candidate: int, code: str) -> None:
        """Have one more candidate evaluated."""
        self._candidates.append(candidate)
        self._codes.append(code)
        if self._feed is not None:
            self._feed.put(code)
            self._work = self._work or self._thread.submit(self._evaluate, self._feed)

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """(candidate, outcome) of each one: first those that have finished, then as they finish. No more are added.

        Raises:
            Exception: what the evaluator raised.
        """
        if self._feed is None:
            yield from self._named(self._evaluator.evaluate(self._codes))
        elif self._work is not None:
            self._feed.close()
            yield from self._named(iter(self._finished.get, None))
            self._work.result()

    def _named(self, finished: Iterator[tuple[int, Outcome] | None]) -> Iterator[tuple[int, Outcome]]:
        for one in finished:
            assert one is not None
            yield self._candidates[one[0]], one[1]

    def _evaluate(self, feed: Feed) -> None:
        """In the thread."""
        assert isinstance(self._evaluator, EvaluatesArriving)
        try:
            for finished in self._evaluator.evaluate_arriving(feed):
                self._finished.put(finished)
        finally:
            self._finished.put(None)
