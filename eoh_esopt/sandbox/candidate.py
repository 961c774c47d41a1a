"""What runs inside the walls: compile the candidate's source, find its function, drive it, answer.

Hostile code shares this interpreter, so nothing said here is believed: the answer carries decisions, which the parent
checks and scores, and a status, which can only cost the candidate something.
"""

from __future__ import annotations

import functools
import inspect
import random
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from eoh_esopt.sandbox import arrays, frames
from operators.records import Status
from operators.task import Task
from problems.base import (
    EVALUATION_SEED,
    Decisions,
    Function,
    InvalidSolution,
    NotFinite,
    Problem,
    WrongShape,
    as_decisions,
)

_FILE = "<candidate>"
_DETAIL = 200
_FRAMES = 8


class Failure(Exception):
    """The end of an evaluation that is no success."""

    def __init__(self, status: Status, detail: str, trace: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.trace = status, detail, trace


class Progress:
    """Counts the calls of the candidate's function that returned.

    Args:
        cell: a writable view of one int64 ("q"); memory shared with another process lets that process read the
            count after this one has been killed. A private cell by default.
    """

    def __init__(self, cell: memoryview | None = None) -> None:
        self._cell = memoryview(bytearray(8)).cast("q") if cell is None else cell
        self._cell[0] = 0

    @property
    def calls(self) -> int:
        """How many calls have returned so far."""
        return int(self._cell[0])

    def counting(self, function: Function) -> Function:
        """The function, which also counts its calls that return."""
        cell = self._cell

        def counted(*arguments: object) -> object:
            value = function(*arguments)
            cell[0] += 1
            return value

        return functools.wraps(function)(counted) if hasattr(function, "__name__") else counted


def answer(problem: Problem, code: str, progress: Progress, chosen: Sequence[int]) -> list[arrays.Buffer]:
    """Evaluate the candidate on the chosen instances and return the frame to send, in parts."""
    try:
        body = arrays.pack(decide(problem, code, progress, chosen))
        return [frames.head({"status": Status.OK.value}, sum(map(len, body))), *body]
    except Failure as failure:
        header = {"status": failure.status.value, "detail": failure.detail[:_DETAIL]}
        return [frames.pack(header, failure.trace.encode(errors="replace"))]


def decide(problem: Problem, code: str, progress: Progress, chosen: Sequence[int]) -> list[Decisions]:
    """What the candidate decides on each of the chosen instances.

    Raises:
        Failure: it does not get to the end.
    """
    try:
        function = progress.counting(load(code, problem.task))
        return [_decide_on(problem, function, index) for index in chosen]
    except Failure:
        raise
    except NotFinite as error:
        raise Failure(Status.NOT_FINITE, str(error)) from error
    except WrongShape as error:
        raise Failure(Status.WRONG_SHAPE, str(error)) from error
    except InvalidSolution as error:
        raise Failure(Status.INVALID_SOLUTION, str(error)) from error
    except MemoryError as error:
        raise Failure(Status.OUT_OF_MEMORY, *_describe(error, code)) from error
    except BaseException as error:
        raise Failure(Status.RAISED, *_describe(error, code)) from error


def _decide_on(problem: Problem, function: Function, index: int) -> Decisions:
    seed_generators(problem.seed(index))
    return as_decisions(problem.solve(problem.instances[index], function), problem.name)


def seed_generators(seed: int) -> None:
    """Start the global generators, which candidates use."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def load(code: str, task: Task) -> Callable[..., object]:
    """Run the source as a module and find the task's function in it.

    Raises:
        Failure: the source does not compile, or defines no such function, or one with other arguments.
    """
    try:
        compiled = compile(code, _FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise Failure(Status.SYNTAX, f"{error.msg}{where}") from None
    except (ValueError, OverflowError) as error:
        raise Failure(Status.SYNTAX, str(error)) from None
    except (RecursionError, MemoryError):
        raise Failure(Status.SYNTAX, "nested too deeply") from None
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    seed_generators(EVALUATION_SEED)
    exec(compiled, module.__dict__)
    function = _find(vars(module), task.function)
    _check_arguments(function, (task.arguments, *task.other_arguments))
    return function


def _find(names: dict[str, object], wanted: str) -> Callable[..., object]:
    """The function of the wanted name, else the last defined of that name and a version suffix such as `_v2`."""
    versions = [name for name in names if re.fullmatch(re.escape(wanted) + r"_?[vV]\d+", name)]
    for name in [wanted, *reversed(versions)]:
        value = names.get(name)
        if callable(value) and not isinstance(value, type):
            return cast(Callable[..., object], value)
    raise Failure(Status.WRONG_NAME, f"no function {wanted} at the top level")


def _check_arguments(function: Callable[..., object], allowed: Sequence[tuple[str, ...]]) -> None:
    """Whether it can be called with one of the argument lists."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    for arguments in allowed:
        try:
            signature.bind(*arguments)
            return
        except TypeError:
            continue
    detail = f"takes {signature}, is called with ({', '.join(allowed[0])})"
    raise Failure(Status.WRONG_ARGUMENTS, detail)


def _describe(error: BaseException, code: str) -> tuple[str, str]:
    """The error's type and text in one line, and its way through the candidate's source, outermost call first."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the candidate's own __str__
        text = "(its text cannot be read)"
    name = type.__dict__["__name__"].__get__(type(error))[: _DETAIL // 2]  # not what its metaclass may say
    lines, way, last = code.split("\n"), [], 0
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            last = traceback.tb_lineno
            source = lines[last - 1].strip() if last <= len(lines) else ""
            way.append(f"line {last}, in {traceback.tb_frame.f_code.co_name}: {source}"[:_DETAIL])
        traceback = traceback.tb_next
    where = f" (line {last})" if last else ""
    detail = f"{name}: {text[: _DETAIL - len(name) - len(where) - 2]}{where}"
    return detail, "\n".join([*way[-_FRAMES:], f"{name}: {text[:_DETAIL]}"])
