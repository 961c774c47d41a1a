"""One candidate in a process of its own: forked, enclosed, read from until the deadline, then killed with all it left.

What a worker of the sandbox does for each candidate. No candidate code runs in the caller.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NoReturn

from eoh_esopt.sandbox import arrays, frames, syscalls

_DEATH_CHECK_S = 0.05
_SWEEP_S = 5.0
_ENCLOSED, _NOT_ENCLOSED = b"+", b"-"
"""What a child writes before its answer, and before the candidate runs: so none can claim that it never ran."""

_Ended = tuple[int, int]
"""Wait status of a child that is gone, and the bytes of resident memory it had at its peak beyond the worker's."""


@dataclass(frozen=True)
class Walls:
    """How a fresh child shuts itself in.

    Attributes:
        leave: takes the descriptor that the answer goes to, lets go of others, and returns where the answer goes then.
        enclose: takes the process id of the caller and puts the walls up. May raise OSError.
    """

    leave: Callable[[int], int]
    enclose: Callable[[int], None]


def watch(
    answer: Callable[[], Sequence[arrays.Buffer]],
    walls: Walls,
    *,
    wall_s: float,
    output_bytes: int,
    own_namespace: bool,
) -> tuple[dict[str, object], arrays.Buffer]:
    """Fork a child for one candidate and see it to its end.

    Args:
        answer: what the child runs; returns a frame in parts.
        walls: put up before that.
        wall_s: seconds from the fork to the whole answer.
        output_bytes: size of the answer.
        own_namespace: whether the caller is the first process of a namespace, where all others can be killed.

    Returns:
        How it ended, and what the child wrote, unread. The first is "end" (answer, flood, timeout, died or broken) with
        "why" for broken, else with "status" (of the wait) and "peak" (bytes).
    """
    receive, send = os.pipe()
    frames.widen(send)
    worker, deadline = os.getpid(), time.monotonic() + wall_s
    try:
        child = os.fork()
    except OSError as error:
        os.close(receive)
        os.close(send)
        return {"end": "broken", "why": f"fork: {error}"}, b""
    if child == 0:
        _child(answer, walls, send, worker)
    os.close(send)
    trouble = _trouble(receive, deadline)
    end, body, ended = ("", b"", None) if trouble else _await(child, receive, deadline, output_bytes)
    os.close(receive)
    status, peak = _sweep(child, ended, own_namespace)
    if trouble:
        return {"end": "broken", "why": trouble}, b""
    return {"end": end, "status": status, "peak": peak}, body


def _child(answer: Callable[[], Sequence[arrays.Buffer]], walls: Walls, send: int, worker: int) -> NoReturn:
    """The life of the child: `answer` runs the candidate."""
    try:
        answer_fd = walls.leave(send)
        try:
            walls.enclose(worker)
        except OSError as error:
            frames.write(answer_fd, _NOT_ENCLOSED + str(error).encode())
            os._exit(0)
        frames.write(answer_fd, _ENCLOSED)
        for part in answer():
            frames.write(answer_fd, part)
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


def end_children(but: Container[int] = ()) -> None:
    """Kill and reap the caller's children and what they leave to it, except some. One that resists is left alone."""
    give_up = time.monotonic() + _SWEEP_S
    while (found := [pid for pid in _children() if pid not in but]) and time.monotonic() < give_up:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
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
