"""From what a worker reports to an `Outcome`: reads the candidate's answer as hostile bytes and scores its decisions.

Runs in the parent, on the parent's own copy of the problem. No answer, however malformed, raises anything else than
`Broken`.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Mapping
from typing import Any

import numpy as np

from eoh_esopt.sandbox import frames
from eoh_esopt.sandbox.candidate import NOT_ENCLOSED
from eoh_esopt.sandbox.limits import Limits
from operators.records import Outcome, Status
from problems.base import Decisions, InvalidSolution, NotFinite, Problem, WrongShape

_DETAIL = 200
_DTYPES = ("int64", "float64")
_MAX_DIMENSIONS = 4
_NEAR_CAP = 0.8
_REPORTABLE = {
    status.value: status
    for status in Status
    if status not in (Status.OK, Status.NO_CODE, Status.INFRASTRUCTURE, Status.TIMEOUT, Status.KILLED)
}


class Broken(Exception):
    """The worker failed, not the candidate: try again."""


def judge(report: Mapping[str, Any], body: bytes, problem: Problem, limits: Limits) -> Outcome:
    """What became of the candidate.

    Args:
        report: the worker's own header, trusted.
        body: what the candidate's process wrote, not trusted.
        problem: the parent's copy.
        limits: the caps it ran under.

    Raises:
        Broken: the worker could not run the candidate.
    """
    if report["end"] == "broken":
        raise Broken(str(report["why"]))
    calls = min(max(int(report["calls"]), 0), problem.n_calls)
    if report["end"] == "timeout":
        return Outcome(Status.TIMEOUT, calls=calls, detail=f"no answer within {limits.wall_s:g} s")
    if report["end"] == "flood":
        return Outcome(Status.WRONG_SHAPE, calls=calls, detail=f"answer longer than {limits.output_bytes} bytes")
    if report["end"] == "died":
        status, detail = _death(int(report["status"]), int(report["peak"]), limits)
        return Outcome(status, calls=calls, detail=detail)
    return _answer(body, calls, problem)


def printable(text: object) -> str:
    """Text of unknown origin as one short line without control characters."""
    line = " ".join(str(text).split())
    return "".join(char if char.isprintable() else "?" for char in line)[:_DETAIL]


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


def _answer(body: bytes, calls: int, problem: Problem) -> Outcome:
    try:
        header, data = frames.untrusted(body)
    except frames.BadFrame as error:
        return Outcome(Status.KILLED, calls=calls, detail=f"malformed answer: {error}")
    status = header.get("status")
    if status == NOT_ENCLOSED:
        raise Broken(printable(header.get("detail", "")))
    if status == Status.OK.value:
        return _scored(header, data, calls, problem)
    if isinstance(status, str) and status in _REPORTABLE:
        return Outcome(_REPORTABLE[status], calls=calls, detail=printable(header.get("detail", "")))
    return Outcome(Status.KILLED, calls=calls, detail="malformed answer: unknown status")


def _scored(header: Mapping[str, Any], data: bytes, calls: int, problem: Problem) -> Outcome:
    try:
        values = problem.score(_decisions(header, data))
        if not all(math.isfinite(value) for value in values):
            raise NotFinite("the objective is not finite")
    except WrongShape as error:
        return Outcome(Status.WRONG_SHAPE, calls=calls, detail=printable(error))
    except NotFinite as error:
        return Outcome(Status.NOT_FINITE, calls=calls, detail=printable(error))
    except InvalidSolution as error:
        return Outcome(Status.INVALID_SOLUTION, calls=calls, detail=printable(error))
    return Outcome(Status.OK, math.fsum(values) / len(values), values, calls)


def _decisions(header: Mapping[str, Any], data: bytes) -> Decisions:
    dtype, shape = header.get("dtype"), header.get("shape")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise WrongShape(f"decisions of type {printable(dtype)}")
    if not isinstance(shape, list) or len(shape) > _MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise WrongShape(f"decisions of shape {printable(shape)}")
    if math.prod(shape) * 8 != len(data):
        raise WrongShape(f"decisions of shape {shape} in {len(data)} bytes")
    return np.frombuffer(data, dtype=dtype).reshape(shape)
