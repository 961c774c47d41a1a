"""From what a worker reports to an `Outcome`: reads the candidate's answer as hostile bytes and scores its decisions.

Runs in the parent, on the parent's own copy of the problem. No answer, however malformed, raises anything else than
`Broken`.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from eoh_esopt.sandbox import arrays, frames
from eoh_esopt.sandbox.limits import Limits
from operators.errors import UserError
from operators.records import Outcome, Status
from problems.base import BadReturn, Decisions, NotFinite, Problem, WrongShape

_DETAIL = 200
_TRACE = 2000
_NEAR_CAP = 0.8
_REPORTABLE = {
    status.value: status
    for status in Status
    if status not in (Status.OK, Status.NO_CODE, Status.INFRASTRUCTURE, Status.TIMEOUT, Status.KILLED)
}
_STATUS_OF = {WrongShape: Status.WRONG_SHAPE, NotFinite: Status.NOT_FINITE}


class Broken(Exception):
    """The worker failed, not the candidate: try again."""


def judge(
    report: Mapping[str, Any],
    body: arrays.Buffer,
    problem: Problem,
    limits: Limits,
    chosen: Sequence[int] | None = None,
) -> Outcome:
    """What became of the candidate.

    Args:
        report: the worker's own header, trusted.
        body: what the candidate's process wrote, not trusted.
        problem: the parent's copy.
        limits: the caps it ran under.
        chosen: the instances it ran on; all when None.

    Raises:
        Broken: the worker could not run the candidate, or there is no memory to score it.
        UserError: the problem's own `score` is wrong.
    """
    chosen = range(len(problem.instances)) if chosen is None else chosen
    calls = max(int(report.get("calls", 0)), 0)
    calls = calls if problem.n_calls is None else min(calls, problem.n_calls)
    return without_answer(report, calls, limits) or _answer(body, calls, problem, chosen)


def without_answer(report: Mapping[str, Any], calls: int, limits: Limits) -> Outcome | None:
    """What became of a candidate that did not answer; None for one that did.

    Raises:
        Broken: the worker could not run the candidate.
    """
    if report["end"] == "broken":
        raise Broken(printable(report["why"]))
    if report["end"] == "timeout":
        return Outcome(Status.TIMEOUT, calls=calls, detail=f"no answer within {limits.wall_s:g} s")
    if report["end"] == "flood":
        return Outcome(Status.WRONG_SHAPE, calls=calls, detail=f"answer longer than {limits.output_bytes} bytes")
    if report["end"] == "died":
        status, detail = _death(int(report["status"]), int(report["peak"]), limits)
        return Outcome(status, calls=calls, detail=detail)
    return None


def answered(body: arrays.Buffer) -> tuple[Status | None, dict[str, Any], arrays.Buffer]:
    """Status, header and data of a candidate's answer, as bytes of unknown origin; status None for a malformed one."""
    try:
        header, data = frames.untrusted(body)
    except frames.BadFrame as error:
        return None, {"detail": f"malformed answer: {error}"}, b""
    status = header.get("status")
    if status == Status.OK.value:
        return Status.OK, header, data
    if isinstance(status, str) and status in _REPORTABLE:
        return _REPORTABLE[status], header, data
    return None, {"detail": "malformed answer: unknown status"}, b""


def printable(text: object) -> str:
    """Text of unknown origin as one short line without control characters."""
    line = " ".join(str(text).split())
    return "".join(char if char.isprintable() else "?" for char in line)[:_DETAIL]


def _printable_lines(data: arrays.Buffer) -> str:
    """Text of unknown origin, line by line made printable."""
    return "\n".join(printable(line) for line in bytes(data[:_TRACE]).decode(errors="replace").split("\n"))


def _death(status: int, peak: int, limits: Limits) -> tuple[Status, str]:
    """Read a wait status. Running into the memory cap kills native code by a signal, so the peak decides."""
    if os.WIFEXITED(status):
        how = f"the process ended with exit code {os.WEXITSTATUS(status)} before it answered"
    else:
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Status.TIMEOUT, "CPU time used up"
        how = f"the process was ended by {signal.Signals(number).name if number in set(signal.Signals) else number}"
    if peak >= _NEAR_CAP * limits.memory_bytes:
        return Status.OUT_OF_MEMORY, f"{how}, near the cap of {limits.memory_bytes >> 20} MiB"
    return Status.KILLED, how


def _answer(body: arrays.Buffer, calls: int, problem: Problem, chosen: Sequence[int]) -> Outcome:
    status, header, data = answered(body)
    return _scored(data, calls, problem, chosen) if status is Status.OK else failed(status, header, data, calls)


def failed(status: Status | None, header: Mapping[str, Any], data: arrays.Buffer, calls: int) -> Outcome:
    """The outcome of an answer that is no success, in the terms of `answered`."""
    detail, trace = printable(header.get("detail", "")), _printable_lines(data)
    return Outcome(status or Status.KILLED, calls=calls, detail=detail, trace=trace)


def _scored(data: arrays.Buffer, calls: int, problem: Problem, chosen: Sequence[int]) -> Outcome:
    values = []
    try:
        for index, decisions in zip(chosen, arrays.unpack(data, len(chosen)), strict=True):
            values.append(_objective(problem, index, decisions))
    except BadReturn as error:
        detail = f"instance {chosen[len(values)]}: {error}" if len(values) < len(chosen) else str(error)
        return Outcome(_STATUS_OF.get(type(error), Status.INVALID_SOLUTION), calls=calls, detail=printable(detail))
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        return Outcome(Status.NOT_FINITE, calls=calls, detail="the mean objective is not finite")
    return Outcome(Status.OK, mean, tuple(values), calls)


def _objective(problem: Problem, index: int, decisions: Decisions) -> float:
    try:
        value = problem.objective(problem.instances[index], decisions)
    except BadReturn:
        raise
    except UserError as error:  # no number: forged decisions may do that to a careless `score`
        raise BadReturn(str(error)) from error
    except MemoryError as error:
        raise Broken(f"score of {problem.name} ran out of memory") from error
    except Exception as error:  # a user's `score` may not expect what a forger sends; the place is named
        raise BadReturn(f"score of {problem.name} raised {type(error).__name__}: {error}") from error
    if not math.isfinite(value):
        raise NotFinite("the objective is not finite")
    return value
