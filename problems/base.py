"""What a problem is: instances, a driver that runs in the sandbox, and a score that is computed outside it.

The driver hands out decisions, never an objective: whatever comes out of the sandbox is checked against the instances
before it is scored. Nothing here starts a process or knows of the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from operators.task import Task

Decisions = NDArray[Any]
"""What a candidate decided on all instances: an int64 or float64 array whose shape the problem fixes."""


class BadReturn(Exception):
    """A candidate's function returned something the problem cannot use; the message says what."""


class WrongShape(BadReturn):
    """The returned value has the wrong type, number of elements or shape."""


class NotFinite(BadReturn):
    """The returned value is NaN or infinite."""


class InvalidSolution(BadReturn):
    """The returned value has the right type, but breaks a rule of the problem."""


class Progress:
    """Counts the calls of the candidate's function that returned.

    Args:
        cell: a writable view of one int64 ("q"); memory shared with another process lets that process read the
            count after this one has been killed. A private cell by default.
    """

    def __init__(self, cell: memoryview | None = None) -> None:
        self._cell = memoryview(bytearray(8)).cast("q") if cell is None else cell
        self._cell[0] = 0

    def advance(self) -> None:
        """Count one call that returned."""
        self._cell[0] += 1

    @property
    def calls(self) -> int:
        """How many calls have returned so far."""
        return int(self._cell[0])


class Problem(Protocol):
    """One heuristic-design problem together with one set of instances."""

    @property
    def task(self) -> Task:
        """What the model is told."""

    @property
    def n_calls(self) -> int:
        """How many times `solve` calls a function that never fails."""

    @property
    def references(self) -> Mapping[str, float]:
        """Objective of known methods on these instances, by name."""

    def solve(self, function: Callable[..., object], progress: Progress) -> Decisions:
        """Run the candidate's function on every instance. Called inside the sandbox.

        Raises:
            BadReturn: the function returned something unusable.
        """

    def score(self, decisions: Decisions) -> tuple[float, ...]:
        """Check decisions of unknown origin and compute the objective of each instance, lower is better.

        Raises:
            BadReturn: the decisions are no solution of these instances.
        """


def as_node(value: object, what: str) -> int:
    """Read a returned value as an integer id.

    Python ints, numpy integers and integer arrays of no dimension are ids. Floats are not, not even integral ones:
    an id is used as an index, and a float cannot be one.

    Args:
        value: what the candidate's function returned.
        what: the function's name, for the message.

    Raises:
        NotFinite: the value is a NaN or an infinity.
        WrongShape: the value is anything else that is no integer.
    """
    if type(value) is int:
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and np.issubdtype(value.dtype, np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        raise NotFinite(f"{what} returned {float(value)}, expected an integer id")
    raise WrongShape(f"{what} returned {_name(value)}, expected an integer id")


def _name(value: object) -> str:
    """Type and, where short, value of an unusable return value."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if value is None or isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, float | complex | np.floating | np.complexfloating):
        return f"{type(value).__name__} {value}"
    return f"a value of type {type(value).__name__}"
