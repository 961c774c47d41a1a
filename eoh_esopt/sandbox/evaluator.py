"""Evaluate candidates in isolation: hands sources to warm workers, retries what the machinery lost, scores here.

Single-threaded: one `select` over all workers. What an outcome says never depends on the number of workers.
"""

from __future__ import annotations

import select
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from eoh_esopt.sandbox import isolation, verdict
from eoh_esopt.sandbox.client import Job, Worker, WorkerGone
from eoh_esopt.sandbox.isolation import Layer
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status

MAX_SOURCE_BYTES = 50_000
"""Longer sources are refused; a request also has to fit into a pipe without blocking."""

_ATTEMPTS = 3
_GRACE_S = 15.0
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
        self._folder = Path(tempfile.mkdtemp(prefix="eoh-esopt-"))
        self._slots: list[Worker | None] = [None] * workers
        self._evaluating = False
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

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """Evaluate candidates; yields (position in `codes`, outcome) as each one finishes, in any order.

        Leaving the iteration early kills what still runs. A second iteration may begin once the first has ended.

        Raises:
            RuntimeError: another iteration is under way, or the evaluator is closed.
        """
        if self._evaluating or not self._slots:
            raise RuntimeError("The evaluator is " + ("in use by another iteration." if self._slots else "closed."))
        self._evaluating = True
        try:
            yield from self._evaluate(codes)
        finally:
            self._evaluating = False
            for slot, worker in enumerate(self._slots):
                if worker is not None and worker.job is not None:
                    self._discard(slot)

    def close(self) -> None:
        """End all workers and remove their folders. May be called again."""
        for slot in range(len(self._slots)):
            self._discard(slot)
        self._slots.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        waiting: deque[Job] = deque()
        for index, code in enumerate(codes):
            source, refusal = _encode(code)
            if refusal:
                yield index, Outcome(Status.SYNTAX, detail=refusal)
            else:
                waiting.append(Job(index, source))
        while waiting or any(worker is not None and worker.job is not None for worker in self._slots):
            for slot in range(len(self._slots)):
                worker = self._slots[slot]
                if waiting and (worker is None or worker.job is None):
                    yield from self._assign(slot, waiting)
            yield from self._collect(waiting)

    def _assign(self, slot: int, waiting: deque[Job]) -> Iterator[tuple[int, Outcome]]:
        job = waiting.popleft()
        try:
            worker = self._slots[slot]
            if worker is None:
                worker = self._slots[slot] = self._launch(slot)
                worker.wait_ready()
            job.deadline = time.monotonic() + self._limits.wall_s + _GRACE_S
            worker.send(job)
        except (WorkerGone, UserError) as error:
            self._discard(slot)
            yield from _retry(job, str(error), waiting)

    def _collect(self, waiting: deque[Job]) -> Iterator[tuple[int, Outcome]]:
        """Wait until a busy worker reports or is overdue, and deal with all that are."""
        busy = {worker: worker.job for worker in self._slots if worker is not None and worker.job is not None}
        if not busy:
            return
        timeout = max(0.0, min(job.deadline for job in busy.values()) - time.monotonic())
        ready = set(select.select(list(busy), [], [], timeout)[0])
        for worker, job in busy.items():
            slot = self._slots.index(worker)
            try:
                if worker in ready:
                    report = worker.receive()
                    if report is not None:
                        worker.job = None
                        yield job.index, verdict.judge(*report, self._problem, self._limits)
                elif time.monotonic() > job.deadline:
                    raise WorkerGone("the worker does not report")
            except WorkerGone as error:
                self._discard(slot)
                yield from _retry(job, str(error), waiting)
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
