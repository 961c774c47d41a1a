"""What a problem is: instances, a driver that runs in the sandbox, and a score that is computed outside it.

The driver hands out decisions, never an objective: whatever comes out of the sandbox is checked against the instances
before it is scored. Nothing here starts a process or knows of the sandbox.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from operators.errors import UserError
from operators.task import Task
from problems.instances import Sets
from problems.template import task_from_template

Function = Callable[..., object]
"""The function a candidate defines."""

Decisions = NDArray[Any]
"""What a candidate decided on one instance: an int64 or float64 array whose shape the problem fixes."""

EVALUATION_SEED = 1234

_NO_NUMBERS = (bool, np.bool_, np.timedelta64)
"""What Python and numpy count among the integers, but nobody means as a number."""

_MAX_BITS = 256
"""Of an integer that is still put into a message."""


class BadReturn(Exception):
    """A candidate's function returned something the problem cannot use; the message says what."""


class WrongShape(BadReturn):
    """The returned value has the wrong type, number of elements or shape."""


class NotFinite(BadReturn):
    """The returned value is NaN or infinite."""


class InvalidSolution(BadReturn):
    """The returned value has the right type, but breaks a rule of the problem."""


class Problem(ABC):
    """One heuristic-design problem together with one set of instances.

    A subclass gives `instances`, `solve`, `score`, and a `template` or its own `task`. The class's docstring tells the
    model what the function is for. See docs/problems.md.

    Attributes:
        name: as on the command line; the name of the class by default.
        template: Python source of a plain solution: imports, and the function with a docstring that says what goes in
            and what comes out. It is what the model is shown, and the heuristic that the search starts from.
        function: which function of the template the model writes; may be left out when there is only one.
        ideas: sentences that the mutation operator suggests to try; general ones by default.
        measure: what the objective is, for tables.
        maximise: whether a larger value is better.
        instances: what there is to solve, in order. Anything; a numpy array, a tuple, a dataclass.
        sets: the sets that can be chosen by split and size; None where there is only one.
    """

    name: str = ""
    template: str = ""
    function: str = ""
    ideas: Sequence[str] = ()
    measure: str = "objective"
    maximise: bool = False
    instances: Sequence[Any]
    sets: Sets | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__dict__.get("name") or cls.__name__

    @cached_property
    def task(self) -> Task:
        """What the model is told.

        Raises:
            UserError: the template does not compile, or has no such function.
        """
        return task_from_template(
            self.template,
            name=self.name,
            description=type(self).__doc__ or "",
            function=self.function,
            ideas=self.ideas,
        )

    @abstractmethod
    def solve(self, instance: Any, function: Function) -> ArrayLike:
        """Let the candidate's function decide on one instance. Called inside the sandbox.

        Returns:
            The decisions: integers or floats, an array or sequences of them.

        Raises:
            BadReturn: the function returned something unusable.
        """

    @abstractmethod
    def score(self, instance: Any, decisions: Decisions) -> float:
        """Check decisions of unknown origin and value them, by nothing but them and the instance.

        Called outside the sandbox, from several threads at once.

        Raises:
            BadReturn: the decisions are no solution of the instance.
        """

    @property
    def n_calls(self) -> int | None:
        """How often a function that never fails is called on all instances together; None when that depends."""
        return None

    def seed(self, index: int) -> int:
        """Seed of the global generators `random` and `numpy.random` while the candidate works on that instance."""
        return EVALUATION_SEED + index

    def key(self, instance: Any) -> str:
        """What stored reference values of the instance are found under; empty when there are none."""
        return ""

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """Classical methods by name: each gives the value that it reaches on one instance."""
        return {}

    def objective(self, instance: Any, decisions: Decisions) -> float:
        """The score as a search minimises it.

        Raises:
            BadReturn: the decisions are no solution of the instance.
            UserError: `score` returned something that is no number.
        """
        value: object = self.score(instance, decisions)
        if isinstance(value, _NO_NUMBERS) or not isinstance(value, int | float | np.integer | np.floating):
            raise UserError(
                f"score of {self.name} returned {name_of(value)}, expected one number. "
                "Return the value of this instance alone, a float."
            )
        return -float(value) if self.maximise else float(value)

    def natural(self, objective: float) -> float:
        """An objective as people read it: the inverse of the sign that `objective` gives."""
        return -objective if self.maximise else objective


def as_decisions(value: ArrayLike, problem: str) -> Decisions:
    """What `solve` returned, as an int64 or float64 array of its own.

    Raises:
        WrongShape: it holds something else than real numbers, integers that int64 cannot hold, or rows of different
            lengths.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise WrongShape(f"the decisions of {problem} are no array: {error}") from None
    if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise WrongShape(f"the decisions of {problem} hold integers beyond 64 bits with a sign")
    if array.dtype.kind in "biu":
        return np.array(array, dtype=np.int64, order="C")
    if array.dtype.kind == "f":
        return np.array(array, dtype=np.float64, order="C")
    raise WrongShape(f"the decisions of {problem} are {name_of(value)}, expected integers or floats")


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
        if value.bit_length() > _MAX_BITS:
            raise WrongShape(f"{what} returned an integer of {value.bit_length()} bits, expected an integer id")
        return value
    if isinstance(value, np.integer) and not isinstance(value, _NO_NUMBERS):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and np.issubdtype(value.dtype, np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        raise NotFinite(f"{what} returned {float(value)}, expected an integer id")
    raise WrongShape(f"{what} returned {name_of(value)}, expected an integer id")


def as_real(value: object, what: str) -> float:
    """Read a returned value as a finite number: a Python or numpy integer or float, or an array of one of them.

    Raises:
        NotFinite: the value is a NaN or an infinity.
        WrongShape: the value is no real number; booleans are none.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, int | float | np.integer | np.floating):
        raise WrongShape(f"{what} returned {name_of(value)}, expected a number")
    try:
        number = float(value)
    except OverflowError:
        raise NotFinite(f"{what} returned an integer beyond the range of floats") from None
    if not np.isfinite(number):
        raise NotFinite(f"{what} returned {number}, expected a finite number")
    return number


def as_matrix(value: object, shape: tuple[int, ...], what: str) -> NDArray[np.float64]:
    """Read a returned value as an array of finite float64 of a given shape, a copy.

    Raises:
        NotFinite: an element is NaN or infinite.
        WrongShape: another shape, or elements that are no real numbers.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise WrongShape(f"{what} returned no array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise WrongShape(f"{what} returned {name_of(value)}, expected real numbers of shape {shape}")
    if array.shape != shape:
        raise WrongShape(f"{what} returned an array of shape {array.shape}, expected {shape}")
    matrix = np.array(array, dtype=np.float64)
    if not np.isfinite(matrix).all():
        count = int((~np.isfinite(matrix)).sum())
        raise NotFinite(f"{what} returned {count} values that are NaN or infinite")
    return matrix


def name_of(value: object) -> str:
    """Type and, where short, value of an unusable return value."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if value is None or isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, float | complex | np.floating | np.complexfloating):
        return f"{type(value).__name__} {value}"
    return f"a value of type {type(value).__name__}"
