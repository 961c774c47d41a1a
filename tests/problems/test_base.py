"""What every problem gets from its base class: reading what candidates return, signs, names."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike

from operators.errors import UserError
from problems.base import (
    BadReturn,
    Decisions,
    Function,
    InvalidSolution,
    NotFinite,
    Problem,
    WrongShape,
    as_decisions,
    as_matrix,
    as_real,
)


class Own(Problem):
    """Guess a number."""

    template = "def guess(x):\n    'A guess.'\n    return x\n"
    instances = (1, 2)

    def __init__(self, worth: Any = 1.0) -> None:
        self.worth = worth

    def solve(self, instance: int, function: Function) -> ArrayLike:
        return as_real(function(instance), "guess")

    def score(self, instance: int, decisions: Decisions) -> float:
        worth: float = self.worth
        return worth


class Evil:
    """Raises whatever numpy asks it."""

    def __array__(self, *arguments: object, **options: object) -> None:
        raise ZeroDivisionError("evil")

    def __str__(self) -> str:
        raise ZeroDivisionError("evil")

    __repr__ = __float__ = __len__ = __index__ = __str__  # type: ignore[assignment]


ITSELF: list[object] = []
ITSELF.append(ITSELF)
NUMBERS = [3, True, -1.5, np.int8(3), np.float16(0.5), np.uint64(2**63 - 1), np.longdouble(2)]
OBJECTS = [None, "3", b"3", 1j, {3}, iter([3]), [None], ["3"], [1j], [10**30], np.array([3], dtype=object), ITSELF]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner),
    max_leaves=6,
) | hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


@pytest.mark.parametrize(
    "value", [3, 3.0, np.int8(3), np.uint64(3), np.float16(3), np.longdouble(3), np.array(3), np.array(3.0)]
)
def test_numbers_of_all_kinds_are_real(value: object) -> None:
    """Heuristics that return what numpy gives them would be refused."""
    number = as_real(value, "f")
    assert (type(number), number) == (float, 3.0)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (True, WrongShape, "f returned True, expected a number"),
        (np.True_, WrongShape, "True"),
        (np.array(True), WrongShape, "True"),
        (None, WrongShape, "None"),
        (1j, WrongShape, "complex 1j"),
        (np.array(1j), WrongShape, "complex128"),
        ("3", WrongShape, "str"),
        ([3], WrongShape, "list"),
        (np.array([3]), WrongShape, r"shape \(1,\) and type int64"),
        (np.array(None), WrongShape, "None"),
        (np.datetime64("2020-01-01"), WrongShape, "datetime64"),
        (np.timedelta64(3), WrongShape, "timedelta64"),
        (np.array(np.timedelta64("nat")), WrongShape, "timedelta64"),
        (Evil(), WrongShape, "Evil"),
        (float("nan"), NotFinite, "f returned nan, expected a finite number"),
        (np.float16("inf"), NotFinite, "inf"),
        (np.array(-np.inf), NotFinite, "-inf"),
        (10**400, NotFinite, "beyond the range of floats"),
        (np.longdouble("1e400"), NotFinite, "inf"),
    ],
)
def test_everything_else_is_no_number(value: object, error: type[BadReturn], message: str) -> None:
    """A wrong return value would be taken for a priority, or end with an error that says nothing."""
    with pytest.raises(error, match=message):
        as_real(value, "f")


@given(values)
def test_any_value_is_a_finite_number_or_refused(value: object) -> None:
    """What some heuristic returns would be blamed on the problem, or be compared as NaN."""
    with contextlib.suppress(BadReturn):
        assert np.isfinite(as_real(value, "f"))


@pytest.mark.parametrize("value", [[1, 0], (1.0, 0), [True, False], np.float16([1, 0]), np.array([1, 0], dtype=">i2")])
def test_arrays_of_all_kinds_are_matrices(value: object) -> None:
    """Heuristics that return lists, masks or small types would be refused."""
    matrix = as_matrix(value, (2,), "f")
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        *((value, WrongShape, "^f returned") for value in OBJECTS),
        ([[1], [2, 3]], WrongShape, "f returned no array"),
        ([1, 2, 3], WrongShape, r"shape \(3,\), expected \(2,\)"),
        ([[1, 2]], WrongShape, r"shape \(1, 2\), expected \(2,\)"),
        (3, WrongShape, r"shape \(\), expected \(2,\)"),
        ([], WrongShape, r"shape \(0,\)"),
        ([1, None], WrongShape, "list"),
        ([1, np.nan], NotFinite, "1 values that are NaN or infinite"),
        (np.float16([np.inf, -np.inf]), NotFinite, "2 values"),
    ],
)
def test_everything_else_is_no_matrix(value: object, error: type[BadReturn], message: str) -> None:
    """A matrix of another shape would be broadcast, and NaN would win every comparison."""
    with pytest.raises(error, match=message):
        as_matrix(value, (2,), "f")


@given(values, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
def test_a_matrix_is_finite_of_its_shape_and_a_copy(value: object, shape: tuple[int, ...]) -> None:
    """A heuristic that keeps what it returned could change it after it was checked."""
    shape = value.shape if isinstance(value, np.ndarray) else shape
    try:
        matrix = as_matrix(value, shape, "f")
    except BadReturn:
        return
    assert (matrix.dtype, matrix.shape) == (np.float64, shape)
    assert np.isfinite(matrix).all()
    assert not isinstance(value, np.ndarray) or not np.shares_memory(matrix, value)


@pytest.mark.parametrize("value", [*NUMBERS, [1, 2], (1, 2), range(3), [[1.5], [2.5]], np.array([True]), []])
def test_decisions_are_what_solve_returned(value: ArrayLike) -> None:
    """The score would see something else than what the driver decided."""
    decisions = as_decisions(value, "own")
    assert decisions.dtype in (np.int64, np.float64)
    assert decisions.shape == np.shape(value)
    assert np.array_equal(decisions, np.asarray(value))


@given(values)
def test_decisions_keep_every_value(value: Any) -> None:
    """Large integers would come out as others, and numbers as arrays."""
    try:
        decisions = as_decisions(value, "own")
    except WrongShape:
        return
    before = np.asarray(value)
    assert decisions.shape == before.shape
    assert decisions.flags.writeable
    assert decisions.flags.c_contiguous
    assert np.array_equal(decisions, before.astype(decisions.dtype), equal_nan=True)
    assert before.dtype.kind == "f" or [int(x) for x in decisions.flat] == [int(x) for x in before.flat]


@pytest.mark.parametrize("value", [*OBJECTS, [[1], [2, 3]], [2**63], np.array([2**64 - 1], dtype=np.uint64)])
def test_other_decisions_are_refused(value: Any) -> None:
    """Integers beyond 64 bits would come out negative, and objects would have to be pickled."""
    with pytest.raises(WrongShape, match="the decisions of own"):
        as_decisions(value, "own")


def test_decisions_are_an_array_of_their_own() -> None:
    """A driver that goes on with its array would change decisions that were made."""
    working = np.arange(3)
    decisions = as_decisions(working, "own")
    working[:] = 7
    assert decisions.tolist() == [0, 1, 2]


@pytest.mark.parametrize("read", [lambda value: as_decisions(value, "own"), lambda value: as_matrix(value, (1,), "f")])
def test_an_error_of_the_returned_object_is_its_own(read: Function) -> None:
    """A heuristic whose object fails would be blamed on the problem; the sandbox tells its line instead."""
    with pytest.raises(ZeroDivisionError, match="evil"):
        read(Evil())


@pytest.mark.parametrize("worth", [2, 2.0, np.int64(2), np.float32(2)])
def test_the_search_minimises_and_people_read_the_value(worth: Any) -> None:
    """A problem to maximise would be searched for its worst heuristic."""
    problem, decisions = Own(worth), np.zeros(())
    found = problem.objective(1, decisions)
    assert (type(found), found, problem.natural(found)) == (float, 2.0, 2.0)
    problem.maximise = True
    found = problem.objective(1, decisions)
    assert (type(found), found, problem.natural(found)) == (float, -2.0, 2.0)


@pytest.mark.parametrize(
    ("worth", "named"),
    [
        ((1.0, 2), "tuple"),
        (None, "None"),
        (True, "True"),
        (np.False_, "False"),
        ("1.0", "str"),
        (1j, "complex 1j"),
        (np.array([1.0]), r"an array of shape \(1,\)"),
        (np.array(1.0), r"an array of shape \(\)"),
        (Evil(), "Evil"),
    ],
)
def test_a_score_that_is_no_number_is_the_users_mistake(worth: object, named: str) -> None:
    """Every candidate would be blamed for a slip in the user's own score."""
    with pytest.raises(UserError, match=f"score of Own returned .*{named}.*, expected one number.*Return the value"):
        Own(worth).objective(1, np.zeros(()))


def test_a_score_may_refuse_and_be_infinite() -> None:
    """What `score` raises would not arrive, and an infinity would be a mistake of the user instead of a bad value."""

    class Refusing(Own):
        def score(self, instance: int, decisions: Decisions) -> float:
            raise InvalidSolution("broken rule")

    with pytest.raises(InvalidSolution, match="broken rule"):
        Refusing().objective(1, np.zeros(()))
    assert Own(float("inf")).objective(1, np.zeros(())) == np.inf


def test_names() -> None:
    """Two problems of one family would be stored and shown under one name."""

    class Named(Own):
        name = "by hand"

    class Child(Named):
        """Guess a number, too."""

    assert [kind.name for kind in (Own, Named, Child)] == ["Own", "by hand", "Child"]
    assert Child().task.name == "Child"


def test_what_need_not_be_given() -> None:
    """The example of the documentation would have to be twice as long."""
    problem = Own()
    assert (problem.n_calls, problem.sets, problem.key(1), dict(problem.baselines)) == (None, None, "", {})
    assert problem.seed(0) != problem.seed(1)
    assert problem.task is problem.task
    assert problem.task.description == "Guess a number."


def test_what_must_be_given() -> None:
    """A class without a score would fail in the middle of a run."""

    class Half(Problem):
        """Half."""

        def solve(self, instance: object, function: Function) -> ArrayLike:
            return 1

    with pytest.raises(TypeError, match="score"):
        Half()  # type: ignore[abstract]
