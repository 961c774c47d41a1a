"""One evaluation of one program by the user's own code, inside a process made for it, told in the words of a sandbox.

The program shares the interpreter with the user's evaluation, as it does in every host: what is reported from here is
checked for its form, not for its truth.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from eoh_esopt.engine._snippets import defined
from eoh_esopt.hosts.host import HostFacts
from eoh_esopt.sandbox import arrays, frames
from eoh_esopt.sandbox.candidate import Failure, Progress, seed_generators
from operators.records import Status
from problems.base import EVALUATION_SEED, NotFinite, WrongShape, as_real

Evaluation = Callable[[str, Progress], object]
"""`Host.evaluate`."""

Around = Callable[[Any], Any]
"""Takes a program's function and returns what to call in its place."""

PROBE = "_eoh_esopt_probe"
"""Name in `sys.modules` under which a probe, see `preflight`, notes that it was called."""

_LINES = 12


def report(evaluate: Evaluation, facts: HostFacts, code: str, progress: Progress) -> list[arrays.Buffer]:
    """Evaluate and return the frame to send: "status", and "value" or "detail"; the body is an error's traceback."""
    try:
        header: Mapping[str, object] = {"status": Status.OK.value, "value": _value(evaluate, facts, code, progress)}
        return [frames.pack(header)]
    except Failure as failure:
        header = {"status": failure.status.value, "detail": failure.detail[:200]}
        return [frames.pack(header, failure.trace.encode(errors="replace"))]


def counting(progress: Progress, attempt: Callable[[Around], object]) -> object:
    """Evaluate with the calls of the program's function counted.

    Something stands around the function for that. Where the evaluation fails without having called it, that may be the
    cause (numba takes plain functions only), so it is tried once more without.

    Args:
        progress: takes the count.
        attempt: evaluates; is given what to put the program's function through.
    """
    wrapped, entered = [False], [False]
    note = progress.counting(lambda: None)

    def around(function: Any) -> Any:
        if not inspect.isfunction(function):
            return function
        wrapped[0] = True

        @functools.wraps(function)
        def call(*arguments: object, **named: object) -> object:
            entered[0] = True
            value = function(*arguments, **named)
            note()
            return value

        return call

    try:
        value = attempt(around)
    except Exception:
        if entered[0] or not wrapped[0]:
            raise
        value = None
    if value is None and wrapped[0] and not entered[0]:
        return attempt(lambda function: function)
    return value


def _value(evaluate: Evaluation, facts: HostFacts, code: str, progress: Progress) -> float:
    """The number that the user's evaluation gives.

    Raises:
        Failure: it gives none.
    """
    tree = _parsed(code)
    seed_generators(EVALUATION_SEED)
    try:
        value = evaluate(code, progress)
    except Failure:
        raise
    except MemoryError as error:
        raise Failure(Status.OUT_OF_MEMORY, *_described(error)) from error
    except BaseException as error:
        raise _failure(error, facts, tree, progress) from error
    if value is None:
        raise _nothing(facts, tree)
    try:
        return as_real(value, "the evaluation")
    except NotFinite as error:
        raise Failure(Status.NOT_FINITE, str(error)) from error
    except WrongShape as error:
        raise Failure(Status.WRONG_SHAPE, str(error)) from error


def _parsed(code: str) -> ast.Module:
    try:
        compile(code, "<program>", "exec", dont_inherit=True)
        return ast.parse(code)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise Failure(Status.SYNTAX, f"{error.msg}{where}") from None
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise Failure(Status.SYNTAX, str(error) or "nested too deeply") from None


def _failure(error: BaseException, facts: HostFacts, tree: ast.Module, progress: Progress) -> Failure:
    """What an error of the evaluation says of the program."""
    if PROBE in sys.modules and not progress.calls:
        progress.counting(lambda: None)()  # the host did not let us count
    if not progress.calls and not _defines(tree, facts.function):
        return _nothing(facts, tree)
    wrong = not progress.calls and isinstance(error, TypeError) and not _takes(tree, facts)
    return Failure(Status.WRONG_ARGUMENTS if wrong else Status.RAISED, *_described(error))


def _nothing(facts: HostFacts, tree: ast.Module) -> Failure:
    if not _defines(tree, facts.function):
        return Failure(Status.WRONG_NAME, f"no {facts.function} at the top level")
    return Failure(Status.INVALID_SOLUTION, "the evaluation returned None")


def _defines(tree: ast.Module, name: str) -> bool:
    return any(name in defined(statement) for statement in tree.body)


def _takes(tree: ast.Module, facts: HostFacts) -> bool:
    """Whether the program's function takes as many arguments as the template's."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == facts.function and facts.arguments is not None:
            plain = len(node.args.posonlyargs) + len(node.args.args)
            most = math.inf if node.args.vararg else plain
            return plain - len(node.args.defaults) <= len(facts.arguments) <= most
    return True


def _described(error: BaseException) -> tuple[str, str]:
    """An error in one line with the place it came from, and the end of its traceback."""
    try:
        text = str(error)
        lines = traceback.format_exception(error)
    except BaseException:  # noqa: BLE001 - the program's own __str__
        text, lines = "(its text cannot be read)", []
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = ""
    if frame is not None:
        name = frame.tb_frame.f_code.co_filename.rpartition("/")[2]
        where = f" (line {frame.tb_lineno} of {'the program' if name.startswith('<') else name})"
    detail = f"{type(error).__name__}: {' '.join(text.split())[:150]}{where}"
    return detail, "".join(lines[-_LINES:])
