"""The contract of tsp_construct: its instances, its driver, and the score that trusts nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.errors import UserError
from problems import tsp_construct
from problems.base import BadReturn, Function, InvalidSolution, NotFinite, WrongShape, as_node
from problems.references import references
from problems.tsp_construct import MAX_CANDIDATES, SETS, TASK, TspConstruct

PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd"


def nearest(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
    return int(unvisited[0])


def objective(problem: TspConstruct, function: Function) -> float:
    return float(np.mean([problem.score(one, problem.solve(one, function)) for one in problem.instances]))


@pytest.mark.parametrize(("split", "size"), SETS.published)
def test_drawn_sets_are_the_published_ones(split: str, size: int) -> None:
    """Results could not be compared with those in the literature."""
    if not PUBLISHED.exists():
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    drawn = SETS.load(split, size)
    assert np.array_equal(drawn, SETS.load(split, size, len(drawn), str(PUBLISHED)))


def test_references_are_known() -> None:
    """Reports would compare with a wrong baseline."""
    found = {one.name: one.mean for one in references(TspConstruct())}
    assert found["nearest neighbour"] == pytest.approx(7.0044, abs=5e-5)


def test_global_generators_are_left_alone() -> None:
    """Loading a problem would change the random numbers of the program around it."""
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    TspConstruct(size=8, n_instances=2)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem = TspConstruct(size=8, n_instances=2)
    seen: list[int] = []

    def check(*arguments: object) -> object:
        current, destination, unvisited, distances = arguments
        assert type(current) is int
        assert destination == 0
        assert isinstance(unvisited, np.ndarray)
        assert isinstance(distances, np.ndarray)
        assert distances.dtype == np.float64
        assert np.all(np.diff(distances[current][unvisited]) >= 0)
        assert not {0, current} & set(unvisited.tolist())
        seen.append(len(unvisited))
        return unvisited[-1]

    tours = np.array([problem.solve(one, check) for one in problem.instances])
    assert seen == [7, 6, 5, 4, 3, 2] * 2
    assert len(seen) == problem.n_calls == 12
    assert tours.dtype == np.int64
    assert np.array_equal(np.sort(tours), [range(8)] * 2)
    assert not tours[:, 0].any()


def test_mutated_arguments_do_not_leak() -> None:
    """A heuristic that writes into its arguments would change the instances for all that follow."""
    problem = TspConstruct(size=8, n_instances=2)

    def vandal(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
        node = int(unvisited[0])
        unvisited[:], distances[:] = -1, 0.0
        return node

    assert objective(problem, vandal) == objective(problem, nearest)


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3), np.array(3)])
def test_integers_of_all_kinds_are_ids(value: object) -> None:
    """Heuristics that return what numpy gives them would be refused."""
    assert as_node(value, "f") == 3


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (True, WrongShape, "True"),
        (np.bool_(False), WrongShape, "False"),
        (3.0, WrongShape, "float 3.0"),
        (np.float64(3), WrongShape, "3.0"),
        (float("nan"), NotFinite, "nan"),
        (np.float32("inf"), NotFinite, "inf"),
        (1j, WrongShape, "complex"),
        ("3", WrongShape, "str"),
        (None, WrongShape, "None"),
        (np.array([3]), WrongShape, r"shape \(1,\)"),
        (np.array(3.0), WrongShape, "float64"),
        ([3], WrongShape, "list"),
    ],
)
def test_everything_else_is_no_id(value: object, error: type[BadReturn], message: str) -> None:
    """A wrong return value would be rounded into a right one, or end with an obscure error."""
    with pytest.raises(error, match=message):
        as_node(value, "f")


@pytest.mark.parametrize("node", [0, 1, 8, -1, 10**30])
def test_choice_has_to_be_unvisited(node: int) -> None:
    """A tour that skips or repeats a node would be counted as short."""
    problem = TspConstruct(size=8, n_instances=1)
    with pytest.raises(InvalidSolution, match=rf"{node}.*step {2 if node == 1 else 1}"):
        problem.solve(problem.instances[0], lambda *arguments: node)


def test_only_the_nearest_are_offered_and_accepted() -> None:
    """On large instances a heuristic could take nodes it was not shown."""
    problem = TspConstruct(size=MAX_CANDIDATES + 12, n_instances=1)
    offered: list[int] = []

    def last(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
        offered.append(len(unvisited))
        return int(unvisited[-1])

    [instance] = problem.instances
    tour = problem.solve(instance, last)
    assert offered[:12] == [50] * 12
    assert offered[12:14] == [49, 48]
    problem.score(instance, tour)
    with pytest.raises(InvalidSolution, match="not offered"):
        problem.solve(instance, lambda current, end, unvisited, distances: int(np.argmax(distances[current])))
    far = int(np.argmax(instance.distances[0]))
    rest = [node for node in range(1, MAX_CANDIDATES + 12) if node != far]
    with pytest.raises(InvalidSolution, match="not among the 50 nearest"):
        problem.score(instance, np.array([0, far, *rest]))


@given(st.permutations(range(1, 6)))
def test_score_is_the_length_of_the_closed_tour(order: list[int]) -> None:
    """The objective would be something else than the length of the tour."""
    problem = TspConstruct(size=6, n_instances=1)
    [instance] = problem.instances
    points = instance.points[[0, *order, 0]]
    assert problem.score(instance, np.array([0, *order])) == pytest.approx(
        np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    )


@pytest.mark.parametrize(
    ("tours", "error"),
    [
        ([0, 1, 2, 3, 3], InvalidSolution),
        ([0, 1, 2, 3, -1], InvalidSolution),
        ([0, 1, 2, 3, 2**62], InvalidSolution),
        ([1, 0, 2, 3, 4], InvalidSolution),
        ([0, 1, 2, 3], WrongShape),
        ([[0, 1, 2, 3, 4]], WrongShape),
        (0, WrongShape),
        ([0.0, 1, 2, 3, 4], WrongShape),
        ([0, 1, 2, 3, float("nan")], WrongShape),
    ],
)
def test_score_checks_forged_tours(tours: object, error: type[BadReturn]) -> None:
    """Whoever forges decisions in the sandbox would be paid for them."""
    problem = TspConstruct(size=5, n_instances=1)
    with pytest.raises(error):
        problem.score(problem.instances[0], np.array(tours))


def test_seeds_are_solutions_and_improve() -> None:
    """The start population would hold heuristics that fail."""
    problem, objectives = TspConstruct(), []
    for seed in TASK.seeds:
        names: dict[str, object] = {}
        exec(seed.code, names)
        function = names[TASK.function]
        assert callable(function)
        objectives.append(objective(problem, function))
        assert seed.code.startswith(f'{TASK.imports}\n\n\n{TASK.signature}\n    """{seed.idea}"""\n')
    assert objectives == pytest.approx([7.0044, 6.6554, 6.4381], abs=5e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_instances": 0}, "n_instances of tsp_construct.*0"),
        ({"n_instances": 65}, "64 instances in train50, not 65"),
        ({"size": 1}, "size of tsp_construct.*1"),
        ({"size": 2.5}, "size of tsp_construct.*2.5"),
        ({"split": "tests"}, "'tests'.*train, val, test"),
        ({"data": "/no/such/folder"}, "/no/such/folder does not exist"),
    ],
)
def test_impossible_sets_are_named(arguments: dict[str, Any], message: str) -> None:
    """A user would get a numpy traceback for a typing error."""
    with pytest.raises(UserError, match=message):
        TspConstruct(**arguments)


def test_duplicate_nodes_are_solved() -> None:
    """A published set with two cities in one place would stop the run."""
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    instance = tsp_construct._cities(points)
    problem = TspConstruct(size=5, n_instances=1)
    assert problem.score(instance, problem.solve(instance, nearest)) == 2.0
