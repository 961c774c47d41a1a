"""The classical tours, and the plain evaluator of tours that the driver has to agree with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.plain import tsp as plain
from problems import tours
from problems.references import references
from problems.tsp_construct import TASK, TspConstruct

Points = NDArray[np.float64]

few_places = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)
scales = st.sampled_from([1e-9, 1.0, 1e9])


def constructed(points: Points) -> tuple[Points, list[NDArray[np.int64]]]:
    distances = tours.distance_matrix(points)
    inserted = tours.farthest_insertion(distances)
    return distances, [tours.nearest_neighbour(distances), inserted, tours.two_opt(inserted, distances)]


@settings(deadline=None)
@given(places=few_places, scale=scales)
def test_tours_visit_every_node_once(places: list[tuple[int, int]], scale: float) -> None:
    """A baseline would be the length of no tour, or not end, where nodes coincide or lie on a line."""
    distances, found = constructed(scale * np.array(places, dtype=np.float64))
    for tour in found:
        assert tour.dtype == np.int64
        assert np.array_equal(np.sort(tour), np.arange(len(places)))
    values = [tours.length(tour, distances) for tour in found]
    assert values[2] <= values[1] * (1 + 1e-12)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 40))
def test_no_reversal_shortens_an_improved_tour(seed: int, n: int) -> None:
    """The baseline would be called 2-opt and be something weaker."""
    generator = np.random.default_rng(seed)
    distances = tours.distance_matrix(generator.random((n, 2)))
    start = generator.permutation(n)
    tour = tours.two_opt(start, distances)
    value = tours.length(tour, distances)
    assert value <= tours.length(start, distances)
    for i in range(n):
        for j in range(i + 2, n + 1):
            turned = np.concatenate((tour[:i], tour[i:j][::-1], tour[j:]))
            assert tours.length(turned, distances) > value - 1e-9


def test_two_opt_leaves_its_argument_alone() -> None:
    """Comparing a tour with its improvement would compare the improvement with itself."""
    distances = tours.distance_matrix(np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
    tour = np.arange(4)
    assert tours.length(tours.two_opt(tour, distances), distances) == 4.0
    assert tour.tolist() == [0, 1, 2, 3]


def test_baselines_reach_what_is_known_of_them() -> None:
    """Reports would hold heuristics against a wrong baseline."""
    found = {one.name: one.mean for one in references(TspConstruct())}
    assert found["nearest neighbour"] == pytest.approx(7.0044, abs=5e-5)
    assert found["farthest insertion"] == pytest.approx(6.031, abs=1e-3)
    assert found["farthest insertion + 2-opt"] == pytest.approx(5.98, abs=5e-3)


def test_baselines_need_nothing_but_points() -> None:
    """Other problems on points could not use the baselines."""
    square = SimpleNamespace(points=np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
    assert {name: value(square) for name, value in tours.BASELINES.items()} == dict.fromkeys(tours.BASELINES, 4.0)


@pytest.mark.parametrize(("seed", "mean"), [(0, 7.0044), (2, 6.4381)])
def test_tsp_construct_agrees_with_the_plain_evaluator(seed: int, mean: float) -> None:
    """Objectives could not be compared with those of the published evaluator."""
    names: dict[str, object] = {}
    exec(TASK.seeds[seed].code, names)
    function = names[TASK.function]
    assert callable(function)
    problem = TspConstruct()
    expected = [plain.tour_length(one.points, function) for one in problem.instances]
    assert np.mean(expected) == pytest.approx(mean, abs=5e-5)
    found = [problem.score(one, problem.solve(one, function)) for one in problem.instances]
    assert found == pytest.approx(expected, abs=1e-9)
