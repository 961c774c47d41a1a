"""Evaluations by a user's own code, each in a process of its own that is ended on time, whatever it does.

The nursery is forked from the user's process before the model is loaded: it has the user's problem as it stands,
without pickling it or importing the user's script again, and never a copy of the model. For each program it forks a
keeper; the keeper forks the child that runs the program, ends it at its deadline together with all it started, and
reports. No candidate code runs in the nursery or in a keeper. There are no walls here: the evaluation is the user's
own, and may read files, use the network or start programs.
"""

from __future__ import annotations

import contextlib
import gc
import math
import mmap
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from eoh_esopt.sandbox import arrays, child, frames, syscalls
from eoh_esopt.sandbox.candidate import Progress
from operators.errors import UserError

Report = Callable[[str, Progress], Sequence[arrays.Buffer]]
"""Evaluates one program in a child and returns the frame to send."""

_GRACE_S = 15.0
_ATTEMPTS = 3
_OUTPUT_BYTES = 1 << 20
_END_S = 10.0
_PAUSE_S = 0.1
_PARENT_CHECK_S = 0.25


class Nursery:
    """A forked process that runs evaluations. A context manager.

    Args:
        report: what a child runs.
        workers: evaluations that may run at once.
        wall_s: limit of one evaluation, in seconds.

    Raises:
        UserError: the process cannot be forked.
    """

    def __init__(self, report: Report, *, workers: int, wall_s: float) -> None:
        self._workers = workers
        self._next = 0
        theirs_in, self._requests = os.pipe()
        self._replies, theirs_out = os.pipe()
        self._reader = frames.Reader(self._replies)
        sys.stdout.flush()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: none of ours run yet
                self._pid = os.fork()
        except OSError as error:
            raise UserError(f"Cannot start the process that runs the evaluations: {error.strerror}.") from error
        if self._pid == 0:
            os.close(self._requests)
            os.close(self._replies)
            _live(report, theirs_in, theirs_out, workers, wall_s)
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], bytes]]:
        """(position, how the child ended, what it wrote) of each program as it finishes.

        Raises:
            UserError: the nursery is gone.
        """
        places: dict[int, int] = {}
        left = deque(enumerate(codes))
        try:
            while left or places:
                while left and len(places) < self._workers:
                    place, code = left.popleft()
                    places[self._next] = place
                    frames.write(self._requests, frames.pack({"id": self._next}, code.encode()))
                    self._next += 1
                for header, body in self._reader.receive():
                    if header["id"] in places:  # others are left from an iteration that was broken off
                        yield places.pop(header["id"]), header, bytes(body)
        except (EOFError, BrokenPipeError) as error:
            raise UserError(
                "The process that runs the evaluations was killed from outside, perhaps for want of memory. "
                "The candidates in flight were not scored. Run the search again with fewer n_processes."
            ) from error

    def close(self) -> None:
        """End the nursery and all evaluations. May be called again."""
        if self._pid == 0:
            return
        os.close(self._requests)  # it ends by itself then
        give_up = time.monotonic() + _END_S
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                break
            time.sleep(0.01)
        os.close(self._replies)
        self._pid = 0


@dataclass(frozen=True)
class _Job:
    """A program on its way through the nursery."""

    id: int
    code: str
    attempt: int = 1


@dataclass
class _Keeper:
    """A process that sees one program through, from the nursery's side."""

    job: _Job
    pid: int
    fd: int
    deadline: float
    data: bytearray = field(default_factory=bytearray)


def _live(report: Report, requests: int, replies: int, workers: int, wall_s: float) -> NoReturn:
    """The life of the nursery."""
    try:
        parent = os.getppid()
        os.setsid()  # away from the terminal's interrupts
        _when_parent_ends(signal.SIGCONT)  # it then looks after itself, even if somebody had stopped it
        _inherit_orphans()
        frames.widen(replies)
        gc.freeze()  # what the children share with it stays shared
        _serve(report, requests, replies, workers, wall_s, parent)
    finally:
        os._exit(0)


def _serve(report: Report, requests: int, replies: int, workers: int, wall_s: float, parent: int) -> None:
    """Start keepers, and pass on what they report, until the parent is gone."""
    waiting: deque[_Job] = deque()
    keepers: dict[int, _Keeper] = {}
    reader = frames.Reader(requests)
    try:
        while os.getppid() == parent:
            while waiting and len(keepers) < workers:
                job = waiting.popleft()
                try:
                    keeper = _start(report, job, wall_s, (requests, replies, *keepers))
                    keepers[keeper.fd] = keeper
                except OSError as error:
                    time.sleep(_PAUSE_S)
                    _lost(job, f"fork: {error}", replies, waiting)
            ready = select.select([requests, *keepers], [], [], _time_left(keepers.values()))[0]
            if requests in ready:
                waiting += [_Job(header["id"], bytes(code).decode()) for header, code in reader.receive()]
            for keeper in list(keepers.values()):
                if _is_done(keeper, ready):
                    del keepers[keeper.fd]
                    _finish(keeper, replies, waiting, {one.pid for one in keepers.values()})
    except EOFError:
        return  # the parent is done
    finally:
        child.end_children()


def _time_left(keepers: Iterable[_Keeper]) -> float:
    """Until the first keeper is late, or to look after the parent: others may hold its end of the pipe open."""
    soonest = min((one.deadline for one in keepers), default=math.inf)
    return min(_PARENT_CHECK_S, max(0.0, soonest - time.monotonic()))


def _is_done(keeper: _Keeper, ready: Sequence[int]) -> bool:
    """Whether it has reported or is gone; it is given up when it is late."""
    if keeper.fd not in ready:
        return time.monotonic() > keeper.deadline
    chunk = os.read(keeper.fd, 1 << 20)
    keeper.data += chunk
    return not chunk


def _start(report: Report, job: _Job, wall_s: float, ours: Sequence[int]) -> _Keeper:
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        for fd in (receive, *ours):
            os.close(fd)
        _keep(report, job.code, send, wall_s)
    os.close(send)
    return _Keeper(job, pid, receive, time.monotonic() + wall_s + _GRACE_S)


def _finish(keeper: _Keeper, replies: int, waiting: deque[_Job], others: Container[int]) -> None:
    """Pass the report on, or try the program again where there is none."""
    os.close(keeper.fd)
    with contextlib.suppress(ProcessLookupError):
        os.kill(keeper.pid, signal.SIGKILL)  # gone already, unless it is late
    os.waitpid(keeper.pid, 0)
    if frames.size(keeper.data) != len(keeper.data):
        child.end_children(others)  # what a lost keeper leaves comes to the nursery
        _lost(keeper.job, "the process that watched it was lost", replies, waiting)
        return
    header, body = frames.unpack(keeper.data)
    if header["end"] == "broken":
        _lost(keeper.job, header["why"], replies, waiting)
    else:
        frames.write(replies, frames.pack({"id": keeper.job.id, **header}, bytes(body)))


def _lost(job: _Job, why: str, replies: int, waiting: deque[_Job]) -> None:
    if job.attempt < _ATTEMPTS:
        waiting.appendleft(replace(job, attempt=job.attempt + 1))
    else:
        frames.write(replies, frames.pack({"id": job.id, "end": "broken", "why": why}))


def _keep(report: Report, code: str, send: int, wall_s: float) -> NoReturn:
    """The life of a keeper."""
    try:
        _when_parent_ends(signal.SIGKILL)
        _inherit_orphans()
        progress = Progress(memoryview(mmap.mmap(-1, 8)).cast("q"))
        began = time.monotonic()
        header, body = child.watch(
            lambda: report(code, progress),
            child.Walls(leave=lambda answer: _leave(answer, send), enclose=_enclose),
            wall_s=wall_s,
            output_bytes=_OUTPUT_BYTES,
            own_namespace=False,
        )
        header = {**header, "calls": progress.calls, "seconds": round(time.monotonic() - began, 3)}
        frames.write(send, frames.pack(header, bytes(body)))
    finally:
        os._exit(0)


def _leave(answer: int, ours: int) -> int:
    """Silence the child; descriptors of the user's stay open, since the evaluation may need them."""
    os.close(ours)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    sys.stdout = sys.stderr = os.fdopen(null, "w")  # they need not be 1 and 2, as in notebooks
    return answer


def _enclose(keeper: int) -> None:
    """A session of its own that ends with its keeper, and goes first when memory runs out."""
    os.setsid()
    _when_parent_ends(signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _when_parent_ends(number: signal.Signals) -> None:
    """Have the kernel send the caller a signal when its parent is gone; Linux only."""
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_PDEATHSIG", syscalls.PR_SET_PDEATHSIG, number)


def _inherit_orphans() -> None:
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_CHILD_SUBREAPER", syscalls.PR_SET_CHILD_SUBREAPER, 1)
