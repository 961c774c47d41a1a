"""The problems by name, and a user's own by the path of its file. Add one here and every command knows it."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from operators.errors import UserError
from problems.aco_bpp import AcoBpp
from problems.aco_cvrp import AcoCvrp
from problems.aco_tsp import AcoTsp
from problems.asp_construct import AspConstruct
from problems.base import Problem
from problems.kp_construct import KpConstruct
from problems.tsp_construct import TspConstruct

_PROBLEMS: dict[str, Callable[..., Problem]] = {
    "aco_bpp": AcoBpp,
    "aco_cvrp": AcoCvrp,
    "aco_tsp": AcoTsp,
    "asp_construct": AspConstruct,
    "kp_construct": KpConstruct,
    "tsp_construct": TspConstruct,
}


def names() -> tuple[str, ...]:
    """Names of all built-in problems, in alphabetical order."""
    return tuple(sorted(_PROBLEMS))


def get(name: str, **selection: Any) -> Problem:
    """The problem of that name, or in that file.

    Args:
        name: a built-in name, or the path of a Python file that defines one subclass of `Problem`
            ("file.py:ClassName" where it defines several).
        selection: what the problem's class is called with: split, size, n_instances, data for the built-in ones.

    Raises:
        UserError: there is no such problem or file, the file does not load, its class takes no such argument or cannot
            be made, or there are no instances.
    """
    make = _PROBLEMS.get(name) or _in_file(name)
    _check_arguments(make, name, selection)
    return make(**selection) if name in _PROBLEMS else _made(make, name, selection)


def is_file(name: str) -> bool:
    """Whether a name is the path of a user's own file."""
    return name.partition(":")[0].endswith(".py")


def absolute(name: str) -> str:
    """The name in a form that holds in every working folder."""
    if not is_file(name):
        return name
    path, colon, attribute = name.partition(":")
    return f"{Path(path).resolve()}{colon}{attribute}"


def _in_file(name: str) -> Callable[..., Problem]:
    if not is_file(name):
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise UserError(f"Unknown problem {name!r}. {hint}Problems: {', '.join(names())}; or the path of a .py file.")
    path, _, attribute = name.partition(":")
    if not Path(path).is_file():
        raise UserError(f"There is no file {path}. Give the path of the Python file that defines the problem.")
    module = _load(Path(path).resolve())
    found = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Problem) and value.__module__ == module.__name__
    }
    if attribute in found:
        return found[attribute]
    there = ", ".join(found) or "none"
    if attribute or len(found) != 1:
        remedy = "Define a class that inherits from problems.Problem" if not found else f"Say which: {path}:NAME"
        wanted = f"no class {attribute!r} that is a Problem" if attribute else f"{len(found)} problems, not one"
        raise UserError(f"{path} holds {wanted}. Problems there: {there}. {remedy}.")
    return next(iter(found.values()))


def _load(path: Path) -> ModuleType:
    """The file as a module under a name that no other has; its own folder is searched for what it imports."""
    spec = importlib.util.spec_from_file_location(f"problem_file_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{path} does not load: {describe(error, path)}. Run it with python to see more.") from error
    finally:
        with contextlib.suppress(ValueError):  # the file may have tidied up itself
            sys.path.remove(str(path.parent))
    return module


def _made(make: Callable[..., Problem], name: str, selection: dict[str, Any]) -> Problem:
    """A user's problem, with what its own constructor raises told as the user's mistake."""
    path = Path(name.partition(":")[0]).resolve()
    try:
        problem = make(**selection)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"The problem in {path} cannot be made: {describe(error, path)}.") from error
    try:
        count = len(problem.instances)
    except (AttributeError, TypeError):
        count = 0
    if not count:
        raise UserError(f"{problem.name} in {path} has no instances. Set self.instances to a list of them in __init__.")
    return problem


def describe(error: BaseException, path: Path) -> str:
    """Type and text of an error, and the last line of the file that it passed through. Syntax errors tell their own."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line else ""
    return f"{type(error).__name__}: {error}{where}"


def _check_arguments(make: Callable[..., Problem], name: str, selection: dict[str, Any]) -> None:
    try:
        inspect.signature(make).bind(**selection)
    except TypeError as error:
        given = ", ".join(selection) or "no arguments"
        raise UserError(
            f"The problem {name!r} cannot be made with {given}: {error}. "
            "Give its class an __init__ that takes what --split, --size, --instances and --data are to set, "
            "with defaults."
        ) from error
