"""The warm worker: a process that has the problem loaded and forks one child for each candidate.

Two processes make a worker. The guardian enters the namespaces, starts the zygote in them, and ends when the zygote
or the parent does. The zygote serves requests on standard input, one at a time, and answers on standard output: it
forks the child, waits for its answer or the deadline, and then kills whatever is left. No candidate code runs here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import resource
import select
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numba  # noqa: F401 - so that no candidate has to wait for it

from eoh_esopt.sandbox import arrays, candidate, frames, isolation, syscalls
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from problems.base import Problem

_PARENT_CHECK_S = 0.25
_DEATH_CHECK_S = 0.05
_SWEEP_S = 5.0
_ENCLOSED, _NOT_ENCLOSED = b"+", b"-"
"""What a child writes before its answer, and before the candidate runs: so none can claim that it never ran."""

_Ended = tuple[int, int]
"""Wait status of a child that is gone, and the bytes of resident memory it had at its peak beyond the worker's."""


@dataclass(frozen=True)
class Setup:
    """What the parent tells a worker on its command line.

    Attributes:
        problem: a `ProblemSpec` as JSON; empty for a worker that only tells what the host offers.
        limits: arguments of `Limits`.
        mode: one of `isolation.MODES`.
        scratch: an empty folder for this worker alone.
    """

    problem: str
    limits: Mapping[str, Any]
    mode: str
    scratch: str


def main(arguments: str) -> None:
    """Run a worker until its parent or its standard input is gone.

    Args:
        arguments: a `Setup` as JSON.
    """
    setup = Setup(**json.loads(arguments))
    parent = os.getppid()
    namespaces = isolation.enter_namespaces(setup.mode)
    zygote = os.fork()
    if zygote == 0:
        try:
            _zygote(setup, namespaces)
        finally:
            os._exit(0)
    _release_pipes()
    while os.waitpid(zygote, os.WNOHANG) == (0, 0):
        if os.getppid() != parent:
            os.kill(zygote, signal.SIGKILL)
            os.waitpid(zygote, 0)
            break
        time.sleep(_PARENT_CHECK_S)
    time.sleep(_PARENT_CHECK_S)  # an idle zygote ends by itself, a moment before its parent is seen to be gone
    if os.getppid() != parent:
        _remove_folders(Path(setup.scratch).parent)


def _remove_folders(worker: Path) -> None:
    """Clean up in the parent's place: this worker's folder, and the one around it once it is empty."""
    shutil.rmtree(worker, ignore_errors=True)
    with contextlib.suppress(OSError):
        worker.parent.rmdir()


def _release_pipes() -> None:
    """The guardian must not hold the zygote's ends of the pipes open."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)


def _zygote(setup: Setup, namespaces: isolation.Layer) -> None:
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_PDEATHSIG", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    requests, replies = os.dup(0), os.dup(1)
    frames.widen(replies)
    _release_pipes()
    try:
        problem = ProblemSpec.from_json(setup.problem).build() if setup.problem else None
        plan, layers = isolation.prepare(setup.mode, Limits(**setup.limits), namespaces, setup.scratch)
    except UserError as error:
        frames.write(replies, frames.pack({"error": str(error)}))
        return
    isolation.protect_worker()
    frames.write(replies, frames.pack({"layers": [[layer.name, layer.on, layer.why] for layer in layers]}))
    if problem is not None:
        _serve(requests, replies, problem, plan, namespaces.on)


def _serve(requests: int, replies: int, problem: Problem, plan: isolation.Plan, own_namespace: bool) -> None:
    cell = memoryview(mmap.mmap(-1, 8)).cast("q")
    gc.freeze()
    while (request := frames.read(requests)) is not None:
        header, code = request
        chosen = header.get("instances", range(len(problem.instances)))
        header, body = _evaluate(bytes(code).decode(), problem, chosen, plan, candidate.Progress(cell), own_namespace)
        frames.write(replies, frames.head(header, len(body)))
        frames.write(replies, body)


def _evaluate(
    code: str,
    problem: Problem,
    chosen: Sequence[int],
    plan: isolation.Plan,
    progress: candidate.Progress,
    own_namespace: bool,
) -> tuple[dict[str, object], arrays.Buffer]:
    """Fork a child for one candidate and see it to its end. The body is what the child wrote, unread."""
    receive, send = os.pipe()
    frames.widen(send)
    worker, deadline = os.getpid(), time.monotonic() + plan.limits.wall_s
    try:
        child = os.fork()
    except OSError as error:
        os.close(receive)
        os.close(send)
        return {"end": "broken", "why": f"fork: {error}"}, b""
    if child == 0:
        _child(lambda: candidate.answer(problem, code, progress, chosen), plan, send, worker)
    os.close(send)
    trouble = _trouble(receive, deadline)
    end, body, ended = ("", b"", None) if trouble else _await(child, receive, deadline, plan.limits.output_bytes)
    os.close(receive)
    status, peak = _sweep(child, ended, own_namespace)
    _empty(plan.scratch)
    if trouble:
        return {"end": "broken", "why": trouble}, b""
    return {"end": end, "status": status, "calls": progress.calls, "peak": peak}, body


def _child(answer: Callable[[], Sequence[arrays.Buffer]], plan: isolation.Plan, send: int, worker: int) -> NoReturn:
    """The life of the child: `answer` runs the candidate."""
    try:
        isolation.leave_descriptors(send, plan.ruleset)
        try:
            isolation.enclose(plan, worker)
        except OSError as error:
            frames.write(isolation.ANSWER_FD, _NOT_ENCLOSED + str(error).encode())
            os._exit(0)
        frames.write(isolation.ANSWER_FD, _ENCLOSED)
        for part in answer():
            frames.write(isolation.ANSWER_FD, part)
        os._exit(0)
    finally:
        os._exit(1)


def _trouble(receive: int, deadline: float) -> str:
    """Why the child is not enclosed; empty when it is, or when that is not known by the deadline."""
    if not select.select([receive], [], [], max(0.0, deadline - time.monotonic()))[0]:
        return ""
    if os.read(receive, 1) == _ENCLOSED:
        return ""
    return os.read(receive, 4096).decode(errors="replace") or "the process ended before it was enclosed"


def _await(child: int, receive: int, deadline: float, cap: int) -> tuple[str, arrays.Buffer, _Ended | None]:
    """Read until the answer is whole, too long or late, or the child is gone: answer, flood, timeout or died.

    A child that is gone is noticed even while a process it left behind holds the pipe open.
    """
    data = bytearray()
    ended: _Ended | None = None
    while (left := deadline - time.monotonic()) > 0:
        readable, _, _ = select.select([receive], [], [], 0 if ended else min(left, _DEATH_CHECK_S))
        if readable:
            chunk = os.read(receive, 1 << 20)
            data += chunk
            total = frames.size(data)
            if max(len(data), total or 0) > cap:
                return "flood", b"", ended
            if total is not None and len(data) >= total:
                return "answer", memoryview(data)[:total], ended
            if not chunk:
                return "died", b"", ended
        elif ended:
            return "died", b"", ended
        else:
            ended = _reap(child, os.WNOHANG)
    return "timeout", b"", ended


def _sweep(child: int, ended: _Ended | None, own_namespace: bool) -> _Ended:
    """Kill and reap the child and everything it started. A process that resists ends the worker."""
    if own_namespace and os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    elif ended is None:
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(child, signal.SIGKILL)
    while ended is None:
        ended = _reap(child, 0)
    give_up = time.monotonic() + _SWEEP_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            if time.monotonic() > give_up:
                os._exit(1)
            for orphan in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            time.sleep(0.001)


def _reap(child: int, options: int) -> _Ended | None:
    pid, status, usage = os.wait4(child, options)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (status, max(0, usage.ru_maxrss - own) * (1024 if syscalls.LINUX else 1)) if pid else None


def _children() -> list[int]:
    """Processes whose parent is the caller; orphans of the candidate are, since the caller inherits them."""
    me, found = os.getpid(), []
    for entry in os.listdir("/proc") if syscalls.LINUX else []:
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(entry))
    return found


def _empty(scratch: str) -> None:
    """Make the scratch folder empty again."""
    with contextlib.suppress(OSError):
        if os.path.islink(scratch):
            os.unlink(scratch)
        os.chmod(scratch, 0o700)
        if not os.listdir(scratch):
            return
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch, mode=0o700, exist_ok=True)
