"""The contract of kp_construct: its instances, its driver, and the score that trusts nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.plain import kp as plain
from operators.errors import UserError
from problems import registry
from problems.base import BadReturn, Function, InvalidSolution, NotFinite, Problem, WrongShape
from problems.kp_construct import SETS, TASK, Items, KpConstruct, _items
from problems.references import key_of, references

PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd"

Floats = NDArray[np.float64]


def most_valuable(remaining: float, weights: Floats, values: Floats) -> int:
    return int(np.argmax(np.where(weights <= remaining + 1e-12, values, -np.inf)))


def densest(remaining: float, weights: Floats, values: Floats) -> int:
    return int(np.argmax(np.where(weights <= remaining + 1e-12, values / (weights + 1e-9), -np.inf)))


def lightest(remaining: float, weights: Floats, values: Floats) -> int:
    return int(np.argmin(weights))


def last_that_fits(remaining: float, weights: Floats, values: Floats) -> int:
    return int(np.flatnonzero(weights <= remaining + 1e-12)[-1])


HEURISTICS = (most_valuable, densest, lightest, last_that_fits)


def pairs(instance: Items) -> Floats:
    return np.column_stack((instance.weights, instance.values))


def objective(problem: Problem, function: Function) -> float:
    return float(np.mean([problem.score(one, np.asarray(problem.solve(one, function))) for one in problem.instances]))


@pytest.mark.parametrize(("split", "size"), SETS.published)
def test_drawn_sets_are_the_published_ones(split: str, size: int) -> None:
    """Results could not be compared with those in the literature."""
    if not PUBLISHED.exists():
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    drawn = SETS.load(split, size)
    assert np.array_equal(drawn, SETS.load(split, size, len(drawn), str(PUBLISHED)))


@pytest.mark.parametrize(
    ("split", "size", "capacity", "mean"),
    [
        ("train", 100, 25.0, 40.1460),
        ("test", 50, 12.5, 19.9751),
        ("test", 100, 25.0, 39.8752),
        ("test", 200, 25.0, 57.5299),
    ],
)
def test_references_are_known(split: str, size: int, capacity: float, mean: float) -> None:
    """Reports would compare with a wrong baseline."""
    problem = registry.get("kp_construct", split=split, size=size)
    assert {one.capacity for one in problem.instances} == {capacity}
    found = {one.name: one.mean for one in references(problem)}
    assert found["density greedy"] == pytest.approx(mean, abs=5e-5)
    assert found["value greedy"] == pytest.approx(objective(problem, most_valuable), abs=1e-8)


def test_capacity_of_other_sizes_is_a_quarter() -> None:
    """Sizes nobody published would be trivial or unsolvable."""
    assert KpConstruct(size=40, n_instances=1).instances[0].capacity == 10.0


def test_keys_follow_from_the_numbers() -> None:
    """Stored optima would not be found, or would be those of another capacity."""
    problem = KpConstruct(n_instances=2)
    first, second = (problem.key(one) for one in problem.instances)
    assert first == key_of(np.append(SETS.load(n_instances=1)[0].ravel(), 25.0))
    assert first not in (second, problem.key(_items(SETS.load()[0], 24.0, "")))


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem = KpConstruct(size=12, n_instances=2)
    for instance in problem.instances:
        left = list(range(12))
        remaining = instance.capacity

        def check(*arguments: object) -> object:
            nonlocal remaining
            capacity, weights, values = arguments
            assert type(capacity) is float
            assert capacity == remaining
            assert isinstance(weights, np.ndarray)
            assert isinstance(values, np.ndarray)
            assert weights.dtype == values.dtype == np.float64
            assert np.array_equal(weights, instance.weights[left])  # noqa: B023
            assert np.array_equal(values, instance.values[left])  # noqa: B023
            index = np.flatnonzero(weights <= capacity)[-1]
            remaining -= float(instance.weights[left.pop(index)])  # noqa: B023
            return index

        taken = problem.solve(instance, check)
        assert taken.dtype == np.int64
        assert sorted([*taken, *left]) == list(range(12))
        assert left
        assert instance.weights[left].min() > remaining
    assert problem.n_calls is None


def test_mutated_arguments_do_not_leak() -> None:
    """A heuristic that writes into its arguments would change the instances for all that follow."""
    problem = KpConstruct(size=12, n_instances=2)

    def vandal(remaining: float, weights: Floats, values: Floats) -> int:
        index = densest(remaining, weights, values)
        weights[:], values[:] = -1.0, 1e9
        return index

    assert objective(problem, vandal) == objective(problem, densest)


@pytest.mark.parametrize("index", [-1, 12, 10**30])
def test_choice_has_to_exist(index: int) -> None:
    """An item taken twice, or counted from the end, would be worth its value again."""
    problem = KpConstruct(size=12, n_instances=1)
    with pytest.raises(InvalidSolution, match=f"{index} of 12 items.*step 1"):
        problem.solve(problem.instances[0], lambda *arguments: index)


def test_choice_has_to_fit() -> None:
    """A knapsack filled beyond its capacity would be counted as valuable."""
    problem = KpConstruct(size=12, n_instances=1)
    with pytest.raises(InvalidSolution, match=r"weight 0\.\d+ where 0\.\d+ remains"):
        problem.solve(problem.instances[0], lambda remaining, weights, values: np.argmax(weights))


@pytest.mark.parametrize(
    ("value", "error"), [(0.0, WrongShape), (float("nan"), NotFinite), (None, WrongShape), ([0], WrongShape)]
)
def test_choice_has_to_be_an_index(value: object, error: type[BadReturn]) -> None:
    """A wrong return value would be rounded into a right one, or end with an obscure error."""
    problem = KpConstruct(size=12, n_instances=1)
    with pytest.raises(error, match="select_next_item"):
        problem.solve(problem.instances[0], lambda *arguments: value)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_objective_is_that_of_the_plain_evaluator(heuristic: Function) -> None:
    """Objectives could not be compared with those of the published evaluator."""
    problem = KpConstruct()
    expected = [plain.total_value(pairs(one), one.capacity, heuristic) for one in problem.instances]  # type: ignore[arg-type]
    found = [problem.score(one, problem.solve(one, heuristic)) for one in problem.instances]
    assert found == pytest.approx(expected, abs=1e-9)


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9),
    tenths=st.integers(9, 30),
    which=st.integers(0, len(HEURISTICS) - 1),
)
def test_rounding_zero_weights_and_equal_items_are_handled_alike(
    rows: list[tuple[int, int]], tenths: int, which: int
) -> None:
    """A user's own data, in decimals or with equal items, would stop the run or be packed beyond its capacity."""
    instance = _items(np.array(rows) / 10, tenths / 10, "it")
    problem, heuristic = KpConstruct(n_instances=1), HEURISTICS[which]
    taken = problem.solve(instance, heuristic)
    assert sum(rows[item][0] for item in taken) <= tenths
    expected = plain.total_value(pairs(instance), instance.capacity, heuristic)
    assert problem.score(instance, taken) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("taken", "error"),
    [
        ([0, 0], InvalidSolution),
        ([0, 4], InvalidSolution),
        ([-1], InvalidSolution),
        ([2**62], InvalidSolution),
        ([3], InvalidSolution),
        ([1, 2], InvalidSolution),
        ([[0, 1]], WrongShape),
        (0, WrongShape),
        ([0.0, 1.0], WrongShape),
        ([float("nan")], WrongShape),
    ],
)
def test_score_checks_forged_items(taken: object, error: type[BadReturn]) -> None:
    """Whoever forges decisions in the sandbox would be paid for them."""
    instance = _items(np.array([[0.2, 1.0], [0.5, 2.0], [0.6, 4.0], [1.5, 8.0]]), 1.0, "it")
    problem = KpConstruct(n_instances=1)
    assert problem.score(instance, np.array([2, 0])) == 5.0
    with pytest.raises(error):
        problem.score(instance, np.array(taken))


def test_seeds_are_solutions_and_improve() -> None:
    """The start population would hold heuristics that fail."""
    problem, objectives = KpConstruct(), []
    for seed in TASK.seeds:
        names: dict[str, object] = {}
        exec(seed.code, names)
        function = names[TASK.function]
        assert callable(function)
        objectives.append(objective(problem, function))
        assert seed.code.startswith(f'{TASK.imports}\n\n\n{TASK.signature}\n    """{seed.idea}"""\n')
    assert objectives == pytest.approx([38.0124, 40.1460, 40.1553], abs=5e-5)


@pytest.mark.parametrize("hint", [idea.hint for idea in TASK.ideas])
def test_hints_are_lines_of_the_function(hint: str) -> None:
    """A mutation would start with a line that fails."""
    names: dict[str, Any] = {}
    exec(f"{TASK.imports}\n{TASK.signature}\n    {hint}\n    return 0\n", names)
    problem = KpConstruct(n_instances=1)
    assert names[TASK.function](25.0, problem.instances[0].weights, problem.instances[0].values) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_instances": 0}, "n_instances of kp_construct.*0"),
        ({"n_instances": 65}, "64 instances in train100, not 65"),
        ({"size": 0}, "size of kp_construct.*0"),
        ({"split": "tests"}, "'tests'.*train, val, test"),
        ({"data": "/no/such/folder"}, "/no/such/folder does not exist"),
        ({"size": 1}, "capacity 0.25 is below the smallest item of instance 0 of kp_construct"),
    ],
)
def test_impossible_sets_are_named(arguments: dict[str, Any], message: str) -> None:
    """A user would get a numpy traceback for a typing error, or a run in which every heuristic is worth nothing."""
    with pytest.raises(UserError, match=message):
        KpConstruct(**arguments)


def test_unusable_data_is_named(tmp_path: Path) -> None:
    """A user would search for hours on instances that allow no decision."""
    raw = np.full((4, 6, 2), 0.5)
    raw[3, :, 0] = 2.0
    np.save(tmp_path / "train6_dataset.npy", raw)
    with pytest.raises(UserError, match=r"capacity 1\.5 is below the smallest item of instance 3 "):
        KpConstruct(size=6, data=str(tmp_path))
    raw[2, 1, 0] = -0.1
    np.save(tmp_path / "train6_dataset.npy", raw)
    with pytest.raises(UserError, match=r"instance 2 .* weight -0\.1"):
        KpConstruct(size=6, data=str(tmp_path))
    assert len(KpConstruct(size=6, n_instances=2, data=str(tmp_path)).instances) == 2


def test_edge_instances_are_solved() -> None:
    """One item, no capacity or items without weight would stop a run on a user's data."""
    problem = KpConstruct(n_instances=1)
    for rows, capacity, taken in (
        ([[0.25, 3.0]], 0.25, [0]),
        ([[0.0, 1.0], [0.5, 9.0], [0.0, 2.0]], 0.0, [2, 0]),
        ([[0.0, 0.0]] * 3, 5.0, [0, 1, 2]),
    ):
        instance = _items(np.array(rows), capacity, "it")
        found = problem.solve(instance, densest)
        assert found.tolist() == taken
        value = problem.score(instance, found)
        assert value == sum(rows[item][1] for item in taken)
        assert all(baseline(instance) == value for baseline in problem.baselines.values())
