"""The contract of asp_construct: its vectors, its driver, and the greedy choice against the definition."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.plain import asp as plain
from operators.errors import UserError
from problems import registry
from problems.asp_construct import TASK, AspConstruct
from problems.base import BadReturn, Function, NotFinite, WrongShape
from problems.references import key_of, references

Element = tuple[int, ...]


def changes(el: Element, n: int, w: int) -> float:
    return float(sum(el[i] != el[i - 1] for i in range(n)))


def falls_from_the_end(el: Element, n: int, w: int) -> float:
    return sum((el[i] < el[i - 1]) * 0.9**i - 0.3 * el[i] * el[i - 4] for i in range(n))


def whole_numbers(el: Element, n: int, w: int) -> int:
    return sum((i * x) % 5 for i, x in enumerate(el)) % 7


def objective(problem: AspConstruct, function: Function) -> float:
    [instance] = problem.instances
    return problem.score(instance, np.asarray(problem.solve(instance, function)))


@pytest.mark.parametrize(
    ("size", "w", "count", "lexicographic"), [(12, 7, 448, 690), (15, 10, 2432, 1842), (21, 15, 68768, 9647)]
)
def test_instances_and_references_are_the_published_ones(size: int, w: int, count: int, lexicographic: int) -> None:
    """Results could not be compared with those in the literature."""
    problem = registry.get("asp_construct", split="test", size=size)
    [instance] = problem.instances
    assert (instance.n, instance.w, len(instance.classes), problem.n_calls) == (size, w, count, count)
    assert problem.key(instance) == key_of(np.array([[size, w]]))
    assert {one.name: one.mean for one in references(problem)}["lexicographic greedy"] == lexicographic


@pytest.mark.parametrize("size", [12, 15])
def test_driver_keeps_the_contract(size: int) -> None:
    """Heuristics would see other arguments than their documentation says, or vectors in another order."""
    problem = AspConstruct(size=size)
    [instance] = problem.instances
    seen: list[object] = []

    def check(*arguments: object) -> object:
        el, n, w = arguments
        assert type(el) is tuple
        assert {type(one) for one in (*el, n, w)} == {int}
        assert (n, w) == (instance.n, instance.w)
        seen.append(el)
        return len(seen)

    priorities = np.asarray(problem.solve(instance, check))
    assert seen == [plain.vector(row) for row in plain.rows(instance.n, instance.w)]
    assert priorities.dtype == np.float64
    assert np.array_equal(priorities, np.arange(1, len(seen) + 1))


@pytest.mark.parametrize("function", [lambda *arguments: 0.0, changes, falls_from_the_end, whole_numbers])
@pytest.mark.parametrize("size", [12, 15])
def test_objective_is_that_of_the_plain_evaluator(size: int, function: Any) -> None:
    """Objectives could not be compared with those of the published evaluator."""
    problem = AspConstruct(size=size)
    [instance] = problem.instances
    assert objective(problem, function) == plain.set_size(instance.n, instance.w, function)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), levels=st.integers(1, 500))
def test_ties_are_broken_alike(seed: int, levels: int) -> None:
    """Priorities with many equal values would give another set than the published evaluator's."""
    problem = AspConstruct(size=12)
    [instance] = problem.instances
    priorities = np.random.default_rng(seed).integers(0, levels, len(instance.classes)) - 1.0
    answers = iter(priorities)
    expected = plain.set_size(instance.n, instance.w, lambda *arguments: next(answers))
    assert problem.score(instance, priorities) == expected


def test_sets_are_admissible_by_definition() -> None:
    """Objectives would count sets that are not admissible."""
    problem = AspConstruct(size=12)
    kept = plain.build(12, 7, changes)
    vectors = np.array(plain.expanded(kept), dtype=np.int8)
    assert objective(problem, changes) == len(vectors) == len({tuple(one) for one in vectors.tolist()})
    support = vectors != 0
    separate = (~support[:, None] & support[None]).any(axis=-1)
    assert np.array_equal(separate, ~np.eye(len(vectors), dtype=bool))
    told_apart = np.array([[[plain.tells_apart((a, b, c)) for c in range(3)] for b in range(3)] for a in range(3)])
    for row in kept:  # any three vectors can be turned together so that the first is one of these
        first = np.array(plain.vector(row))
        second = (vectors != first).any(axis=1)
        fine = told_apart[first[None, None], vectors[second][:, None], vectors[second][None]].any(axis=-1)
        assert np.all(fine | np.eye(second.sum(), dtype=bool))


def test_the_best_known_size_is_reached() -> None:
    """No search could come to the optimum, since the driver or the score would not let it."""
    assert objective(AspConstruct(size=12), lambda el, n, w: -abs(el.count(1) - el.count(2))) == 792


def test_the_sign_of_zero_does_not_matter() -> None:
    """A heuristic that multiplies by -1 would change the order of equal vectors."""
    problem = AspConstruct()
    [instance] = problem.instances
    zeros = np.zeros(len(instance.classes))
    zeros[1::2] = -0.0
    assert problem.score(instance, zeros) == 1842


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), NotFinite, "nan"),
        (np.float64("-inf"), NotFinite, "-inf"),
        (10**400, NotFinite, "range"),
        (None, WrongShape, "None"),
        (True, WrongShape, "True"),
        ("1", WrongShape, "str"),
        ((1.0,), WrongShape, "tuple"),
        (1j, WrongShape, "complex"),
        (np.array([1.0]), WrongShape, r"shape \(1,\)"),
    ],
)
def test_priorities_have_to_be_finite_numbers(value: object, error: type[BadReturn], message: str) -> None:
    """A wrong return value would be taken for a priority, or end with an obscure error."""
    problem = AspConstruct(size=12)
    with pytest.raises(error, match=f"priority returned .*{message}"):
        problem.solve(problem.instances[0], lambda *arguments: value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.float32(3), np.array(3), np.array(3.0)])
def test_numbers_of_all_kinds_are_priorities(value: object) -> None:
    """Heuristics that return what numpy gives them would be refused."""
    problem = AspConstruct(size=12)
    assert set(np.asarray(problem.solve(problem.instances[0], lambda *arguments: value))) == {3.0}


@pytest.mark.parametrize(
    ("priorities", "error"),
    [
        (np.zeros(447), WrongShape),
        (np.zeros(449), WrongShape),
        (np.zeros((448, 1)), WrongShape),
        (np.zeros(()), WrongShape),
        (np.zeros(448, dtype=np.int64), WrongShape),
        (np.full(448, np.nan), NotFinite),
        (np.append(np.zeros(447), np.inf), NotFinite),
    ],
)
def test_score_checks_forged_priorities(priorities: NDArray[Any], error: type[BadReturn]) -> None:
    """Whoever forges decisions in the sandbox would be paid for them, or crash the search."""
    problem = AspConstruct(size=12)
    with pytest.raises(error):
        problem.score(problem.instances[0], priorities)


def test_large_sets_are_scored_in_no_time_and_by_threads_at_once() -> None:
    """The search would wait for its own scoring, or get another value when candidates end together."""
    problem = AspConstruct(split="test", size=21)
    [instance] = problem.instances
    priorities = [np.random.default_rng(seed).random(len(instance.classes)) for seed in range(4)]
    began = time.process_time()
    one_by_one = [problem.score(instance, one) for one in priorities]
    assert time.process_time() - began < 8.0
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda one: problem.score(instance, one), priorities)) == one_by_one


def test_seeds_are_solutions_and_improve() -> None:
    """The start population would hold heuristics that fail."""
    objectives = []
    for seed in TASK.seeds:
        names: dict[str, object] = {}
        exec(seed.code, names)
        function = names[TASK.function]
        assert callable(function)
        objectives.append(objective(AspConstruct(), function))
        assert seed.code.startswith(f'{TASK.imports}\n\n\n{TASK.signature}\n    """{seed.idea}"""\n')
    assert objectives == [1842, 2334, 2610]


@pytest.mark.parametrize("hint", [idea.hint for idea in TASK.ideas])
def test_hints_are_lines_of_the_function(hint: str) -> None:
    """A mutation would start with a line that fails."""
    names: dict[str, Any] = {}
    exec(f"{TASK.imports}\n{TASK.signature}\n    {hint}\n    return 0\n", names)
    assert objective(AspConstruct(), names[TASK.function]) == 1842


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 18}, "size of asp_construct.*12, 15, 21, 24, not 18"),
        ({"size": 0}, "12, 15, 21, 24, not 0"),
        ({"n_instances": 2}, "asp_construct has 1 instances in train15, not 2"),
        ({"n_instances": 0}, "n_instances of asp_construct.*0"),
        ({"split": "tests"}, "'tests'.*train, val, test"),
        ({"data": "/tmp"}, "asp_construct reads no data"),
    ],
)
def test_impossible_sets_are_named(arguments: dict[str, Any], message: str) -> None:
    """A user would get a numpy traceback for a typing error."""
    with pytest.raises(UserError, match=message):
        AspConstruct(**arguments)
