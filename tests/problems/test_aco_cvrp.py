"""The contract of aco_cvrp: the ants walk, wait, mark and are measured as in the published evaluator."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.plain import aco_cvrp as plain
from eoh_esopt.sandbox.candidate import Failure, Progress, load
from operators.errors import UserError
from operators.records import Status
from problems import aco_cvrp, ants, routes
from problems.aco_cvrp import CAPACITY, TASK, AcoCvrp, Customers, _customers
from problems.base import NotFinite
from problems.references import references

Floats = NDArray[np.float64]


def customers(*demands: float, seed: int = 0) -> Customers:
    points = np.random.default_rng(seed).random((len(demands) + 1, 2))
    return _customers(np.column_stack(([0.0, *demands], points)), 1, 0)


def many(n: int) -> Customers:
    return customers(*np.random.default_rng(2).integers(1, 10, n))


def uneven(instance: Customers) -> Floats:
    """A heuristic that is not symmetric, so that rows are not taken for columns."""
    n = len(instance.demands)
    matrix: Floats = np.random.default_rng(1).random((n, n)) ** 3 / instance.distances
    return matrix


def test_references_are_known() -> None:
    """Reports would compare with a wrong baseline."""
    found = {one.name: one.mean for one in references(AcoCvrp())}
    assert found["nearest neighbour"] == pytest.approx(11.5929, abs=5e-5)
    assert found["savings"] == pytest.approx(8.3221, abs=5e-5)


def test_baselines_keep_to_the_capacity() -> None:
    """A baseline that overloads vehicles would look better than anything a heuristic can reach."""
    points = np.array([[0.5, 0.5], [0.5, 0.6], [0.5, 0.7], [0.5, 0.8]])
    instance = _customers(np.column_stack(([0.0, 20, 20, 20], points)), 1, 0)
    assert routes.savings(instance.distances, instance.demands, CAPACITY) == pytest.approx(0.2 + 0.6)
    assert routes.nearest_neighbour(instance.distances, instance.demands, CAPACITY) == pytest.approx(0.4 + 0.6)
    assert routes.savings(instance.distances, instance.demands, 60) == pytest.approx(0.6)


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem = AcoCvrp(size=8, n_instances=1)
    [instance] = problem.instances

    def check(distances: Any, coordinates: Any, demands: Any, capacity: Any) -> object:
        assert distances.shape == (9, 9)
        assert np.array_equal(np.diag(distances), np.ones(9))
        assert coordinates.shape == (9, 2)
        assert np.array_equal(coordinates[0], [0.5, 0.5])
        assert demands.dtype == np.float64
        assert demands[0] == 0
        assert demands[1:].min() >= 1
        assert type(capacity) is int
        assert capacity == 50
        return distances

    assert np.array_equal(problem.solve(instance, check), instance.distances)


@pytest.mark.parametrize(
    "code",
    [
        "def heuristics(d, q):\n    assert q.max() <= 9 / 50\n    return d * q",
        "def heuristics(distance_matrix, demands, power=2):\n    return distance_matrix * demands",
        "heuristics = lambda d, q: d * q",
        "import numba\n@numba.njit\ndef heuristics(d, q):\n    return d * q",
        "def heuristics(d, c, q, capacity):\n    return d * q / capacity",
        "def heuristics(d, c, q, capacity=1, power=2.0):\n    return d * q / capacity",
        "def heuristics(*given):\n    return given[0] * given[2] / given[3]",
        "class Late:\n    def __call__(self, d, c, q, capacity):\n        return d * q / capacity\nheuristics = Late()",
    ],
    ids=["two", "two and a default", "lambda", "numba", "four", "defaults", "any", "object"],
)
def test_both_argument_lists_are_known(code: str) -> None:
    """Heuristics with the short argument list, which the published evaluator takes too, would be lost."""
    problem = AcoCvrp(size=8, n_instances=1)
    [one] = problem.instances
    function = Progress().counting(load(code, TASK))
    assert np.allclose(problem.solve(one, function), one.distances * one.demands / CAPACITY)


@pytest.mark.parametrize("arguments", ["", "d", "d, c, q", "d, c, q, capacity, more"])
def test_other_argument_lists_are_refused(arguments: str) -> None:
    """The candidate would fail with an error about a call that nobody showed it."""
    with pytest.raises(Failure, match=r"is called with \(distance_matrix, coordinates, demands, capacity\)") as caught:
        load(f"def heuristics({arguments}):\n    return d", TASK)
    assert caught.value.status is Status.WRONG_ARGUMENTS


def test_a_function_without_a_signature_gets_all_arguments() -> None:
    """A function written in C could not be evaluated at all."""
    problem = AcoCvrp(size=8, n_instances=1)
    [one] = problem.instances

    class Hidden:
        __signature__ = "none"

        def __call__(self, *arguments: Any) -> object:
            assert len(arguments) == 4
            return arguments[0]

    assert np.array_equal(problem.solve(one, Hidden()), one.distances)


def test_one_route_for_all_is_the_shortest_tour() -> None:
    """The objective would be something else than the length of the routes: few customers fit into one vehicle."""
    instance = customers(9, 9, 9, 9, 9)
    heuristic = 1 / instance.distances**2
    heuristic[:, 0] = 0.0
    length = min(
        sum(instance.distances[a, b] for a, b in zip((0, *order), (*order, 0), strict=True))
        for order in permutations(range(1, 6))
    )
    problem = AcoCvrp(size=5, n_instances=1)
    assert problem.score(instance, heuristic) == pytest.approx(length, rel=1e-12)


def test_full_vehicles_return() -> None:
    """Routes would carry more than a vehicle can."""
    instance = customers(30, 30, 30)
    problem = AcoCvrp(size=3, n_instances=1)
    expected = 2 * instance.distances[0, 1:].sum()
    assert problem.score(instance, np.ones((4, 4))) == pytest.approx(expected, rel=1e-12)


def test_one_customer() -> None:
    """The smallest instance would divide by zero or never end."""
    instance = customers(50)
    assert AcoCvrp(size=1, n_instances=1).score(instance, np.ones((2, 2))) == 2 * instance.distances[0, 1]


def test_waiting_is_charged_as_in_the_published_evaluator() -> None:
    """Published values contain the charge; without it no value could be compared with them."""
    instance = many(4)
    paths = np.array([[0, 1, 2, 3, 4, 0, 0, 0], [0, 1, 0, 2, 3, 4, 0, 0], [0, 1, 0, 2, 0, 3, 4, 0]])
    costs = np.empty(3)
    ants.route_costs(instance.distances, paths, np.array([5, 6, 7]), costs)
    theirs = plain.costs_of(torch.tensor(instance.distances), torch.from_numpy(paths))
    assert costs == pytest.approx(theirs.numpy(), rel=1e-14)
    lengths = [instance.distances[path[:-1], path[1:]][:steps] for path, steps in zip(paths, (5, 6, 7), strict=True)]
    assert costs == pytest.approx([lengths[0].sum() + 2, lengths[1].sum() + 1, lengths[2].sum()])


@pytest.mark.parametrize(("n_ants", "n_iterations", "repeats"), [(1, 1, 400), (30, 1, 60), (30, 20, 30)])
def test_values_are_distributed_as_those_of_the_plain_evaluator(n_ants: int, n_iterations: int, repeats: int) -> None:
    """Objectives could not be compared with published ones."""
    instance = many(20)
    heuristic = uneven(instance)
    tensors = [torch.tensor(one) for one in (instance.distances, heuristic, instance.demands)]
    theirs = [plain.cheapest(*tensors, 50, seed, n_ants, n_iterations) for seed in range(repeats)]
    ours = [
        ants.cheapest_routes(
            instance.distances, heuristic, instance.demands, 50.0, ants.stream(seed), n_ants, n_iterations, 0.9
        )
        for seed in range(4 * repeats)
    ]
    error = np.hypot(np.std(theirs) / np.sqrt(repeats), np.std(ours) / np.sqrt(4 * repeats))
    assert abs(np.mean(ours) - np.mean(theirs)) < 3.5 * error
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=3.5 / np.sqrt(2 * repeats) + 0.1)


def test_routes_are_marked_as_by_the_plain_evaluator() -> None:
    """Ants would learn something else than in the published evaluator; waiting, which nobody can choose, aside."""
    instance, generator = many(20), torch.Generator().manual_seed(0)
    paths = plain.walk(torch.tensor(uneven(instance)), torch.tensor(instance.demands), 50, 30, generator)
    costs = plain.costs_of(torch.tensor(instance.distances), paths)
    steps = np.array([int(np.flatnonzero(path)[-1]) + 1 for path in paths.numpy()])
    ours = np.random.default_rng(0).random((21, 21)) * 1e-9
    theirs = torch.tensor(ours)
    ants.mark_routes(ours, paths.numpy(), steps, costs.numpy(), 0.9)
    plain.mark(theirs, paths, costs, 0.9)
    ours[0, 0] = theirs[0, 0]
    assert np.array_equal(ours, theirs.numpy())
    assert ours.min() == 1e-10


def test_rows_beyond_float64_are_refused() -> None:
    """A row whose total overflows would send all ants to one node."""
    problem = AcoCvrp(size=8, n_instances=1)
    with pytest.raises(NotFinite, match="pheromone together"):
        problem.score(problem.instances[0], np.full((9, 9), 1.7e308))
    assert problem.score(problem.instances[0], np.full((9, 9), 1e300)) > 0


def test_duplicate_nodes_are_solved() -> None:
    """A set with a customer at the depot, or two in one place, would stop the run."""
    points = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.5], [1.0, 0.5]])
    instance = _customers(np.column_stack(([0.0, 5, 5, 5], points)), 1, 0)
    heuristic = 1 / (instance.distances + 1e-6)
    heuristic[:, 0] = 0.0
    assert AcoCvrp(size=3, n_instances=1).score(instance, heuristic) == 1.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 0.5, 0.5], [51, 0, 0]], "Customer 1 of instance 3 of aco_cvrp has demand 51; a vehicle carries 50"),
        ([[0, 0.5, 0.5], [-1, 0, 0]], "no demand may be negative"),
        ([[2, 0.5, 0.5], [1, 0, 0]], "first row of instance 3 of aco_cvrp must be the depot"),
        ([[0, 0.5, 0.5], [1, 0.5, 0.5]], "All nodes of instance 3 of aco_cvrp lie in one place"),
    ],
)
def test_impossible_instances_are_named(rows: list[list[float]], message: str) -> None:
    """Ants would look for routes that do not exist, for ever or with an obscure error."""
    with pytest.raises(UserError, match=message):
        _customers(np.array(rows), 1, 3)


def test_published_settings_are_used() -> None:
    """Objectives would be those of another colony than the published one."""
    assert (aco_cvrp.N_ANTS, aco_cvrp.N_ITERATIONS, aco_cvrp.DECAY) == (30, 100, 0.9)
    problem = AcoCvrp(size=20, n_instances=1)
    [one] = problem.instances
    heuristic = 1 / one.distances + 1e-9
    stream = ants.stream(21234)
    expected = ants.cheapest_routes(one.distances, heuristic, one.demands, 50.0, stream, 30, 100, 0.9)
    assert problem.score(one, 1 / one.distances) == expected
