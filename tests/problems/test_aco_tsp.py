"""The contract of aco_tsp: the ants walk, mark and are measured as in the published evaluator."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.plain import aco_tsp as plain
from operators.errors import UserError
from problems import aco_tsp, ants, tours
from problems.aco_tsp import AcoTsp, Cities, _cities
from problems.base import NotFinite
from problems.references import references

Floats = NDArray[np.float64]


def cities(n: int, seed: int = 0) -> Cities:
    return _cities(np.random.default_rng(seed).random((n, 2)), 1, 0)


def uneven(n: int) -> NDArray[np.float32]:
    """A heuristic that is not symmetric, so that rows are not taken for columns."""
    generator = np.random.default_rng(1)
    return (generator.random((n, n)) ** 3 / cities(n).distances).astype(np.float32)


def test_references_are_known() -> None:
    """Reports would compare with a wrong baseline."""
    found = {one.name: one.mean for one in references(AcoTsp())}
    assert found["nearest neighbour"] == pytest.approx(6.9989, abs=5e-5)


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem = AcoTsp(size=8, n_instances=1)
    [instance] = problem.instances

    def check(*arguments: Any) -> object:
        [distances] = arguments
        assert distances.dtype == np.float64
        assert distances.flags.writeable
        assert np.array_equal(np.diag(distances), np.ones(8))
        assert distances[2, 5] == distances[5, 2] == np.linalg.norm(instance.points[2] - instance.points[5])
        return distances

    matrix = problem.solve(instance, check)
    assert matrix.dtype == np.float64
    assert np.array_equal(matrix, instance.distances)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_score_is_the_length_of_a_shortest_tour(n: int) -> None:
    """The objective would be something else than the length of the best tour: on few nodes ants find the optimum."""
    instance = cities(n)
    routes = (np.array([0, *rest]) for rest in permutations(range(1, n)))
    optimum = min(tours.length(route, instance.distances) for route in routes)
    problem = AcoTsp(size=n, n_instances=1)
    assert problem.score(instance, 1 / instance.distances**3) == pytest.approx(optimum, rel=1e-12)


@pytest.mark.parametrize(("n_ants", "n_iterations", "repeats"), [(1, 1, 400), (30, 20, 30)])
def test_values_are_distributed_as_those_of_the_plain_evaluator(n_ants: int, n_iterations: int, repeats: int) -> None:
    """Objectives could not be compared with published ones."""
    instance, heuristic = cities(20), uneven(20)
    single = torch.tensor(instance.distances.astype(np.float32))
    theirs = [
        plain.shortest(single, torch.from_numpy(heuristic), seed, n_ants, n_iterations) for seed in range(repeats)
    ]
    ours = [
        ants.shortest_tour(instance.distances, heuristic, ants.stream(seed), n_ants, n_iterations, 0.9)
        for seed in range(4 * repeats)
    ]
    error = np.hypot(np.std(theirs) / np.sqrt(repeats), np.std(ours) / np.sqrt(4 * repeats))
    assert abs(np.mean(ours) - np.mean(theirs)) < 3.5 * error
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=3.5 / np.sqrt(2 * repeats) + 0.1)


@pytest.mark.parametrize("n", [2, 3, 20])
def test_tours_are_marked_as_by_the_plain_evaluator(n: int) -> None:
    """Ants would learn something else than in the published evaluator."""
    generator = np.random.default_rng(0)
    paths = np.array([generator.permutation(n) for _ in range(30)])
    lengths = generator.uniform(3, 9, 30).astype(np.float32)
    ours = generator.random((n, n)).astype(np.float32)
    theirs = torch.tensor(ours)
    ants.mark_tours(ours, paths, lengths.astype(np.float64), 0.9)
    plain.mark(theirs, torch.from_numpy(paths), torch.from_numpy(lengths), 0.9)
    assert np.array_equal(ours, theirs.numpy())


def test_zeros_are_lifted() -> None:
    """Ants that have only edges of value 0 left could go nowhere."""
    instance = cities(12)
    problem = AcoTsp(size=12, n_instances=1)
    sparse = np.zeros((12, 12))
    sparse[0, 1] = 1.0
    lifted = np.maximum(sparse, 1e-9)
    assert problem.score(instance, sparse) == problem.score(instance, lifted)


@pytest.mark.parametrize("value", [1e39, -1e39])
def test_values_beyond_float32_are_refused(value: float) -> None:
    """Infinite weights would make the walk undefined."""
    problem = AcoTsp(size=8, n_instances=1)
    matrix = np.ones((8, 8))
    matrix[2, 3] = value
    with pytest.raises(NotFinite, match="returned values beyond the range of float32"):
        problem.score(problem.instances[0], matrix)


def test_rows_beyond_float32_are_refused() -> None:
    """A row whose total overflows would send all ants to one node."""
    problem = AcoTsp(size=8, n_instances=1)
    with pytest.raises(NotFinite, match="pheromone together"):
        problem.score(problem.instances[0], np.full((8, 8), 3e38))
    assert problem.score(problem.instances[0], np.full((8, 8), 1e36)) > 0


def test_duplicate_nodes_are_solved() -> None:
    """A set with two cities in one place would stop the run."""
    instance = _cities(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), 1, 0)
    assert instance.distances[0, 1] == 0
    problem = AcoTsp(size=5, n_instances=1)
    assert problem.score(instance, 1 / (instance.distances + 1e-6)) == 2.0


def test_nodes_all_in_one_place_are_named() -> None:
    """Every candidate would fail, and nobody would say why: pheromone grows by 1 / length."""
    with pytest.raises(UserError, match=r"All nodes of instance 3 of aco_tsp"):
        _cities(np.full((5, 2), 0.25), 1, 3)


def test_one_node_is_refused() -> None:
    """There is no tour to look for, and no candidate could be told from another."""
    with pytest.raises(UserError, match="size of aco_tsp must be at least 2 nodes, not 1"):
        AcoTsp(size=1)


def test_published_settings_are_used() -> None:
    """Objectives would be those of another colony than the published one."""
    assert (aco_tsp.N_ANTS, aco_tsp.N_ITERATIONS, aco_tsp.DECAY) == (30, 100, 0.9)
    problem = AcoTsp(size=20, n_instances=1)
    [one] = problem.instances
    heuristic = (1 / one.distances).astype(np.float32)
    expected = ants.shortest_tour(one.distances, heuristic, ants.stream(21234), 30, 100, 0.9)
    assert problem.score(one, 1 / one.distances) == expected
