"""What runs inside the walls: compile the candidate's source, find its function, drive it, answer.

Hostile code shares this interpreter, so nothing said here is believed: the answer carries decisions, which the parent
checks and scores, and a status, which can only cost the candidate something.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from eoh_esopt.sandbox import frames
from operators.records import Status
from operators.task import Task
from problems.base import Decisions, InvalidSolution, NotFinite, Problem, Progress, WrongShape

_FILE = "<candidate>"
_DETAIL = 200
_RANDOM_SEED = 1234

NOT_ENCLOSED = "not_enclosed"
"""Status of an answer in place of the candidate's: a wall could not be put up, so it never ran."""


class Failure(Exception):
    """The end of an evaluation that is no success."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def answer(problem: Problem, code: str, progress: Progress) -> bytes:
    """Evaluate the candidate and return the frame to send."""
    try:
        decisions = _decide(problem, code, progress)
        header = {"status": Status.OK.value, "dtype": str(decisions.dtype), "shape": list(decisions.shape)}
        return frames.pack(header, decisions.tobytes())
    except Failure as failure:
        return frames.pack({"status": failure.status.value, "detail": failure.detail[:_DETAIL]})


def _decide(problem: Problem, code: str, progress: Progress) -> Decisions:
    try:
        function = load(code, problem.task)
        return problem.solve(function, progress)
    except Failure:
        raise
    except NotFinite as error:
        raise Failure(Status.NOT_FINITE, str(error)) from None
    except WrongShape as error:
        raise Failure(Status.WRONG_SHAPE, str(error)) from None
    except InvalidSolution as error:
        raise Failure(Status.INVALID_SOLUTION, str(error)) from None
    except MemoryError as error:
        raise Failure(Status.OUT_OF_MEMORY, _describe(error)) from None
    except BaseException as error:  # noqa: BLE001 - the candidate may raise anything, SystemExit included
        raise Failure(Status.RAISED, _describe(error)) from None


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
    random.seed(_RANDOM_SEED)
    np.random.seed(_RANDOM_SEED)  # noqa: NPY002 - candidates use the global generator
    exec(compiled, module.__dict__)
    function = _find(vars(module), task.function)
    _check_arguments(function, task.arguments)
    return function


def _find(names: dict[str, object], wanted: str) -> Callable[..., object]:
    """The function of the wanted name, else the last defined of that name and a version suffix such as `_v2`."""
    versions = [name for name in names if re.fullmatch(re.escape(wanted) + r"_?[vV]\d+", name)]
    for name in [wanted, *reversed(versions)]:
        value = names.get(name)
        if callable(value) and not isinstance(value, type):
            return cast(Callable[..., object], value)
    raise Failure(Status.WRONG_NAME, f"no function {wanted} at the top level")


def _check_arguments(function: Callable[..., object], arguments: Sequence[str]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        detail = f"takes {signature}, is called with ({', '.join(arguments)})"
        raise Failure(Status.WRONG_ARGUMENTS, detail) from None


def _describe(error: BaseException) -> str:
    """The error's type and text, and the last line of the candidate's source it passed through."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the candidate's own __str__
        text = "(its text cannot be read)"
    line = 0
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    where = f" (line {line})" if line else ""
    name = type.__getattribute__(type(error), "__name__")
    room = _DETAIL - len(name) - len(where) - 2
    return f"{name}: {text[:room]}{where}"
