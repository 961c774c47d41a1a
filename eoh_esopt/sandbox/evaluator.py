"""Evaluate candidates in isolation: hands sources to warm workers, retries what the machinery lost, scores here.

One `select` over all workers; scores are computed by as many threads, while the workers go on. What an outcome says
never depends on the number of workers.
"""

from __future__ import annotations

import os
import select
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from eoh_esopt.sandbox import isolation, verdict
from eoh_esopt.sandbox.client import Job, Worker, WorkerGone
from eoh_esopt.sandbox.feed import Feed
from eoh_esopt.sandbox.isolation import Layer
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status

MAX_SOURCE_BYTES = 50_000
"""Longer sources are refused; a request also has to fit into a pipe without blocking."""

_ATTEMPTS = 3
_GRACE_S = 15.0
_SCORES_PER_WORKER = 2
"""Decisions may be large: workers rest while this many reports wait for their score."""

_DEFAULT_LIMITS = Limits()


class Evaluator:
    """A pool of warm workers for one problem. A context manager.

    Args:
        spec: the problem.
        workers: number of processes, at least 1.
        limits: caps on each candidate.
        isolation: "best" takes what the host offers, "required" fails where Landlock, seccomp or dropping
            capabilities is not to be had, "none" keeps to resource limits, an empty environment and process groups.

    Raises:
        UserError: an argument is wrong, the problem cannot be loaded, or the required isolation is not to be had.
    """

    def __init__(
        self, spec: ProblemSpec, *, workers: int, limits: Limits = _DEFAULT_LIMITS, isolation: str = "best"
    ) -> None:
        _check(workers, isolation)
        self._spec, self._limits, self._mode = spec, limits, isolation
        self._problem = spec.build()
        _ = self._problem.task  # what is wrong with a template is said here, and blamed on no candidate
        self._folder = Path(tempfile.mkdtemp(prefix="eoh-esopt-"))
        self._slots: list[Worker | None] = [None] * workers
        self._evaluating = False
        self._busy_seconds = 0.0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="score")
        self._closed = False
        self._scores: dict[Future[Outcome], Job] = {}
        self._scored, self._wake = os.pipe()
        try:
            for slot in range(workers):
                self._slots[slot] = self._launch(slot)
            for worker in self._slots:
                if worker is not None:
                    worker.wait_ready()
                    self._layers = worker.layers
            _demand(isolation, self._layers)
        except WorkerGone as error:
            self.close()
            raise UserError(f"The sandbox does not start: {error}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def isolation_level(self) -> str:
        """One line for people: the layers in force, and those the host refuses."""
        return isolation.summary(self._layers)

    @property
    def busy_seconds(self) -> float:
        """How long workers had a candidate until they reported on it or were lost, summed over the workers."""
        return self._busy_seconds

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """Evaluate candidates; yields (position in `codes`, outcome) as each one finishes, in any order.

        Leaving the iteration early kills what still runs. A second iteration may begin once the first has ended.

        Raises:
            RuntimeError: another iteration is under way, or the evaluator is closed.
        """
        yield from self._run(*_admit(codes, 0))

    def evaluate_arriving(self, feed: Feed) -> Iterator[tuple[int, Outcome]]:
        """As `evaluate`, of candidates that come while others run: each goes to the first worker that is free.

        Ends when the feed is closed and all have an outcome, or when it is dropped: that kills what still runs. The
        positions are those in which the candidates came.

        Raises:
            RuntimeError: as `evaluate`.
        """
        yield from self._run([], deque(), feed)

    def evaluate_each(self, code: str) -> Iterator[tuple[int, Outcome]]:
        """Evaluate one candidate on each instance by itself; yields (instance, outcome) as each one finishes.

        Each instance is a process of its own, with the whole time limit. A candidate that keeps no state between
        instances gets the same values as from `evaluate`.

        Raises:
            RuntimeError: as `evaluate`.
        """
        source, refusal = _encode(code)
        indices = range(len(self._problem.instances))
        if refusal:
            yield from self._run([(index, Outcome(Status.SYNTAX, detail=refusal)) for index in indices], deque())
        else:
            yield from self._run([], deque(Job(index, source, (index,)) for index in indices))

    def close(self) -> None:
        """End all workers and remove their folders. May be called again."""
        for slot in range(len(self._slots)):
            self._discard(slot)
        self._slots.clear()
        if not self._closed:
            self._closed = True
            self._pool.shutdown()  # first, so that no thread writes to a descriptor that may be another's by then
            os.close(self._scored)
            os.close(self._wake)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(
        self, refused: list[tuple[int, Outcome]], waiting: deque[Job], feed: Feed | None = None
    ) -> Iterator[tuple[int, Outcome]]:
        if self._evaluating or not self._slots:
            raise RuntimeError("The evaluator is " + ("in use by another iteration." if self._slots else "closed."))
        self._evaluating = True
        arrived = 0
        try:
            yield from refused
            while self._unfinished(waiting, feed):
                if feed is not None:
                    codes = feed.take()
                    refused, jobs = _admit(codes, arrived)
                    arrived += len(codes)
                    waiting.extend(jobs)
                    yield from refused
                for slot in range(len(self._slots)):
                    worker = self._slots[slot]
                    room = len(self._scores) < _SCORES_PER_WORKER * len(self._slots)
                    if waiting and room and (worker is None or worker.job is None):
                        yield from self._assign(slot, waiting)
                yield from self._collect(waiting, feed)
        finally:
            self._evaluating = False
            for slot, busy in enumerate(self._slots):
                if busy is not None and busy.job is not None:
                    self._discard(slot)
            for score in self._scores:
                score.cancel()
            self._scores.clear()

    def _unfinished(self, waiting: deque[Job], feed: Feed | None) -> bool:
        if feed is not None and feed.dropped:
            return False
        return bool(waiting or self._scores or self._busy() or (feed is not None and feed.open))

    def _busy(self) -> dict[Worker, Job]:
        return {worker: worker.job for worker in self._slots if worker is not None and worker.job is not None}

    def _assign(self, slot: int, waiting: deque[Job]) -> Iterator[tuple[int, Outcome]]:
        job = waiting.popleft()
        try:
            worker = self._slots[slot]
            if worker is None:
                worker = self._slots[slot] = self._launch(slot)
                worker.wait_ready()
            job.began = time.monotonic()
            job.deadline = job.began + self._limits.wall_s + _GRACE_S
            worker.send(job)
        except (WorkerGone, UserError) as error:
            self._discard(slot)
            yield from _retry(job, str(error), waiting)

    def _collect(self, waiting: deque[Job], feed: Feed | None) -> Iterator[tuple[int, Outcome]]:
        """Wait until a worker reports or is overdue, a score or a new candidate is there, and deal with what is."""
        busy = self._busy()
        arriving = [feed] if feed is not None and feed.open else []  # before `dropped`: a feed left out wakes nobody
        idle = not busy and not self._scores
        if (feed is not None and feed.dropped) or (idle and (waiting or not arriving)):
            return
        timeout = max(0.0, min(job.deadline for job in busy.values()) - time.monotonic()) if busy else None
        sources: list[Any] = [*busy, self._scored, *arriving]
        ready = set(select.select(sources, [], [], timeout)[0])
        for worker, job in busy.items():
            try:
                if worker in ready:
                    report = worker.receive()
                    if report is not None:
                        worker.job = None
                        self._busy_seconds += time.monotonic() - job.began
                        self._score(job, *report)
                elif time.monotonic() > job.deadline:
                    raise WorkerGone("the worker does not report")
            except WorkerGone as error:
                self._busy_seconds += time.monotonic() - job.began
                self._discard(self._slots.index(worker))
                yield from _retry(job, str(error), waiting)
        if self._scored in ready:
            os.read(self._scored, 4096)
            yield from self._finished(waiting)

    def _score(self, job: Job, report: dict[str, Any], body: memoryview) -> None:
        """Have the report judged by a thread, which then wakes the `select`."""
        score = self._pool.submit(verdict.judge, report, body, self._problem, self._limits, job.instances)
        self._scores[score] = job
        score.add_done_callback(lambda _: os.write(self._wake, b"."))

    def _finished(self, waiting: deque[Job]) -> Iterator[tuple[int, Outcome]]:
        for score in [score for score in self._scores if score.done()]:
            job = self._scores.pop(score)
            try:
                yield job.index, score.result()
            except verdict.Broken as error:
                yield from _retry(job, str(error), waiting)

    def _launch(self, slot: int) -> Worker:
        folder = self._folder / f"worker-{slot}"
        folder.mkdir(mode=0o700, exist_ok=True)
        return Worker(self._spec, self._limits, self._mode, folder)

    def _discard(self, slot: int) -> None:
        worker = self._slots[slot]
        if worker is not None:
            self._slots[slot] = None
            worker.kill()


def describe(mode: str = "best") -> list[Layer]:
    """What this host offers, layer by layer. Starts one worker and ends it.

    Raises:
        UserError: the mode is unknown, or no worker can be started.
    """
    _check(1, mode)
    with tempfile.TemporaryDirectory(prefix="eoh-esopt-") as folder:
        try:
            worker = Worker(None, Limits(), mode, Path(folder))
            try:
                worker.wait_ready()
                return worker.layers
            finally:
                worker.kill()
        except WorkerGone as error:
            raise UserError(f"The sandbox does not start: {error}") from error


def _check(workers: int, mode: str) -> None:
    if workers < 1:
        raise UserError(f"The number of evaluation workers must be at least 1, not {workers}.")
    if mode not in isolation.MODES:
        raise UserError(f"Unknown isolation {mode!r}. Choose one of: {', '.join(isolation.MODES)}.")


def _demand(mode: str, layers: list[Layer]) -> None:
    lacking = isolation.missing(layers) if mode == "required" else []
    if lacking:
        reasons = "; ".join(f"{layer.name}: {layer.why}" for layer in lacking)
        raise UserError(
            f"Isolation is required, but this host does not offer {reasons}. "
            "Use a newer kernel (6.7 or later), or choose isolation 'best'."
        )


def _admit(codes: Sequence[str], first: int) -> tuple[list[tuple[int, Outcome]], deque[Job]]:
    """Outcomes of the sources that are refused, and jobs for the others; `first` is the first one's position."""
    refused, jobs = [], deque[Job]()
    for index, code in enumerate(codes, first):
        source, refusal = _encode(code)
        if refusal:
            refused.append((index, Outcome(Status.SYNTAX, detail=refusal)))
        else:
            jobs.append(Job(index, source))
    return refused, jobs


def _encode(code: str) -> tuple[bytes, str]:
    """The source as bytes, and why it is refused (empty when it is not)."""
    try:
        source = code.encode()
    except UnicodeEncodeError:
        return b"", "the source holds characters that are no text (lone surrogates)"
    if len(source) > MAX_SOURCE_BYTES:
        return b"", f"the source is longer than {MAX_SOURCE_BYTES} bytes"
    return source, ""


def _retry(job: Job, why: str, waiting: deque[Job]) -> Iterator[tuple[int, Outcome]]:
    """Put the candidate back in the queue, or give it up for good."""
    if job.attempt < _ATTEMPTS:
        job.attempt += 1
        waiting.appendleft(job)
    else:
        detail = verdict.printable(f"given up after {_ATTEMPTS} attempts: {why}")
        yield job.index, Outcome(Status.INFRASTRUCTURE, detail=detail)
