"""The problems by name. Add one here and every command knows it."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from operators.errors import UserError
from problems.base import Problem
from problems.tsp_construct import TspConstruct

_PROBLEMS: dict[str, Callable[[], Problem]] = {"tsp_construct": TspConstruct}


def names() -> tuple[str, ...]:
    """Names of all problems, in alphabetical order."""
    return tuple(sorted(_PROBLEMS))


def get(name: str) -> Problem:
    """The problem of that name on its training set.

    Raises:
        UserError: there is no such problem; the message lists what there is.
    """
    if name in _PROBLEMS:
        return _PROBLEMS[name]()
    near = difflib.get_close_matches(name, names(), n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise UserError(f"Unknown problem {name!r}. {hint}Problems: {', '.join(names())}.")
