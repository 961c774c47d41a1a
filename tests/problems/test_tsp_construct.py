"""The contract of tsp_construct: its instances, its driver, and the score that trusts nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.errors import UserError
from problems import registry
from problems.base import BadReturn, InvalidSolution, NotFinite, Progress, WrongShape, as_node
from problems.tsp_construct import MAX_CANDIDATES, TASK, TspConstruct

PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd/tsp_constructive/train50_dataset.npy"


def nearest(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
    return int(unvisited[0])


def test_training_set_is_the_published_one() -> None:
    """Results could not be compared with those in the literature."""
    if not PUBLISHED.exists():
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    assert np.array_equal(TspConstruct().instances, np.load(PUBLISHED))


def test_references_are_known() -> None:
    """Reports would compare with a wrong baseline."""
    references = TspConstruct().references
    assert references["nearest neighbour"] == pytest.approx(7.0044, abs=5e-5)
    assert references["optimum"] == 5.7106
    assert list(TspConstruct(2, 8).references) == ["nearest neighbour"]


def test_global_generators_are_left_alone() -> None:
    """Loading a problem would change the random numbers of the program around it."""
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    TspConstruct(2, 8)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem, progress = TspConstruct(2, 8), Progress()
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

    tours = problem.solve(check, progress)
    assert seen == [7, 6, 5, 4, 3, 2] * 2
    assert progress.calls == problem.n_calls == 12
    assert tours.dtype == np.int64
    assert np.array_equal(np.sort(tours), [range(8)] * 2)
    assert not tours[:, 0].any()


def test_mutated_arguments_do_not_leak() -> None:
    """A heuristic that writes into its arguments would change the instances for all that follow."""
    problem = TspConstruct(2, 8)

    def vandal(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
        node = int(unvisited[0])
        unvisited[:], distances[:] = -1, 0.0
        return node

    tours = problem.solve(vandal, Progress())
    assert problem.score(tours) == problem.score(problem.solve(nearest, Progress()))


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
    progress = Progress()
    with pytest.raises(InvalidSolution, match=str(node)):
        TspConstruct(1, 8).solve(lambda *arguments: node, progress)
    assert progress.calls == (2 if node == 1 else 1)


def test_only_the_nearest_are_offered_and_accepted() -> None:
    """On large instances a heuristic could take nodes it was not shown."""
    problem = TspConstruct(1, MAX_CANDIDATES + 12)
    offered: list[int] = []

    def last(current: int, destination: int, unvisited: NDArray[np.int64], distances: NDArray[np.float64]) -> int:
        offered.append(len(unvisited))
        return int(unvisited[-1])

    tours = problem.solve(last, Progress())
    assert offered[:12] == [50] * 12
    assert offered[12:14] == [49, 48]
    problem.score(tours)
    with pytest.raises(InvalidSolution, match="not offered"):
        problem.solve(lambda current, end, unvisited, distances: int(np.argmax(distances[current])), Progress())
    far = int(np.argmax(np.linalg.norm(problem.instances[0] - problem.instances[0, 0], axis=1)))
    rest = [node for node in range(1, MAX_CANDIDATES + 12) if node != far]
    with pytest.raises(InvalidSolution, match="not among the 50 nearest"):
        problem.score(np.array([[0, far, *rest]]))


@given(st.permutations(range(1, 6)))
def test_score_is_the_length_of_the_closed_tour(order: list[int]) -> None:
    """The objective would be something else than the length of the tour."""
    problem = TspConstruct(1, 6)
    points = problem.instances[0][[0, *order, 0]]
    assert problem.score(np.array([[0, *order]]))[0] == pytest.approx(
        np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    )


@pytest.mark.parametrize(
    ("tours", "error"),
    [
        ([[0, 1, 2, 3, 3]], InvalidSolution),
        ([[0, 1, 2, 3, -1]], InvalidSolution),
        ([[0, 1, 2, 3, 2**62]], InvalidSolution),
        ([[1, 0, 2, 3, 4]], InvalidSolution),
        ([[0, 1, 2, 3]], WrongShape),
        ([0, 1, 2, 3, 4], WrongShape),
        ([[0, 1, 2, 3, 4]] * 2, WrongShape),
        ([[0.0, 1, 2, 3, 4]], WrongShape),
        ([[0, 1, 2, 3, float("nan")]], WrongShape),
    ],
)
def test_score_checks_forged_tours(tours: list[object], error: type[BadReturn]) -> None:
    """Whoever forges decisions in the sandbox would be paid for them."""
    with pytest.raises(error):
        TspConstruct(1, 5).score(np.array(tours))


def test_seeds_are_solutions_and_improve() -> None:
    """The start population would hold heuristics that fail."""
    problem, objectives = TspConstruct(), []
    for seed in TASK.seeds:
        names: dict[str, object] = {}
        exec(seed.code, names)
        function = names[TASK.function]
        assert callable(function)
        objectives.append(np.mean(problem.score(problem.solve(function, Progress()))))
        assert seed.code.startswith(f'{TASK.imports}\n\n\n{TASK.signature}\n    """{seed.idea}"""\n')
    assert objectives == pytest.approx([7.0044, 6.6554, 6.4381], abs=5e-5)


@pytest.mark.parametrize(("arguments", "name"), [((0,), "n_instances"), ((1, 2), "n_nodes"), ((1, 5, -1), "seed")])
def test_impossible_sizes_are_named(arguments: tuple[int, ...], name: str) -> None:
    """A user would get a numpy traceback for a typing error."""
    with pytest.raises(UserError, match=f"{name} of tsp_construct.*{arguments[-1]}"):
        TspConstruct(*arguments)


def test_registry_helps_with_names() -> None:
    """A user who mistypes a problem would not learn what there is."""
    assert registry.names() == ("tsp_construct",)
    assert registry.get("tsp_construct").task is TASK
    with pytest.raises(UserError, match=r"'tsp_constructs'.*Did you mean 'tsp_construct'\?.*Problems: tsp_construct"):
        registry.get("tsp_constructs")
    with pytest.raises(UserError, match=r"^Unknown problem 'x'\. Problems: tsp_construct\.$"):
        registry.get("x")
