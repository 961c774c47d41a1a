"""The contract of aco_bpp: items are packed, pairs marked and bins counted as in the published evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.plain import aco_bpp as plain
from operators.errors import UserError
from problems import aco_bpp, ants, ants_packing
from problems.aco_bpp import AcoBpp, Items, _items
from problems.references import references

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def sizes_of(n: int, seed: int = 0) -> Integers:
    return np.random.default_rng(seed).integers(20, 101, n)


def uneven(n: int) -> Floats:
    """A heuristic that is not symmetric, so that rows are not taken for columns."""
    return np.random.default_rng(1).random((n, n)) ** 3 + 1e-6


def even(n: int) -> Floats:
    """A heuristic of few and whole values, so that many items are equally good."""
    return np.random.default_rng(1).integers(1, 4, (n, n)) / 4


@pytest.mark.parametrize(
    ("split", "size", "first_fit"), [("train", 500, 202.4), ("test", 500, 203.34375), ("test", 1000, 405.359375)]
)
def test_references_are_known(split: str, size: int, first_fit: float) -> None:
    """Reports would compare with a wrong baseline."""
    found = {one.name: one.mean for one in references(AcoBpp(split, size))}
    assert found["first-fit decreasing"] == first_fit
    assert found["best-fit decreasing"] <= first_fit


def test_driver_keeps_the_contract() -> None:
    """Heuristics would see other arguments than their documentation says."""
    problem = AcoBpp(size=8, n_instances=1)
    [instance] = problem.instances

    def check(*arguments: Any) -> object:
        demand, capacity = arguments
        assert demand.dtype == np.int64
        assert demand.flags.writeable
        assert demand.min() >= 20
        assert demand.max() <= 100
        assert type(capacity) is int
        assert capacity == 150
        return np.outer(demand, demand)

    matrix = problem.solve(instance, check)
    assert matrix.dtype == np.float64
    assert np.array_equal(matrix, np.outer(instance.sizes, instance.sizes))


@pytest.mark.parametrize("heuristic", [uneven(80), even(80), np.ones((80, 80))], ids=["uneven", "even", "all one"])
def test_greedy_packings_are_the_plain_ones(heuristic: Floats) -> None:
    """A heuristic would get other packings than in the published evaluator, where values are equal above all."""
    sizes, bins, order = sizes_of(80), np.empty(80, np.int64), np.empty(80, np.int64)
    for seed in range(20):
        number, fitness = ants_packing.pack(bins, order, heuristic, sizes, 150, True, ants.stream(seed))
        openers = iter([item for k, item in enumerate(order) if k == 0 or bins[item] != bins[order[k - 1]]])
        expected = plain.pack(heuristic, sizes, 150, plain.first_best, lambda left, openers=openers: next(openers))
        assert np.array_equal(bins, expected)
        assert number == bins.max() + 1
        assert fitness == pytest.approx(plain.fitness_of(bins, sizes, 150), rel=1e-12)
        assert np.array_equal(np.sort(order), np.arange(80))


def test_items_are_valued_by_their_mean_affinity_and_an_even_chance() -> None:
    """Ants would follow a heuristic of small values more, or less, than in the published evaluator."""
    affinity, sizes = uneven(10) * 1e-5, np.array([60, 50, 20, 30, 40, 41, 90, 20, 25, 151])
    values, sums = np.empty(10), np.empty(10)
    ants_packing._weigh(values, sums, affinity[0], sizes, 90, 1)
    ants_packing._weigh(values, sums, affinity[1], sizes, 40, 2)
    expected = (affinity[0] + affinity[1]) / 2 + 1e-5
    assert values == pytest.approx(np.where(sizes <= 40, expected, 0.0), rel=1e-14)


@pytest.mark.parametrize(("n_ants", "n_iterations", "repeats"), [(1, 1, 300), (10, 8, 30)])
def test_ants_are_distributed_as_those_of_the_plain_evaluator(n_ants: int, n_iterations: int, repeats: int) -> None:
    """Held-out values could not be compared with published ones."""
    sizes, heuristic = sizes_of(60), uneven(60)
    theirs = [plain.fewest(heuristic, sizes, 150, seed, n_ants, n_iterations) for seed in range(repeats)]
    ours = [
        ants_packing.fewest_bins(heuristic, sizes, 150, ants.stream(seed), n_ants, n_iterations, 0.95)
        for seed in range(4 * repeats)
    ]
    _assert_alike(theirs, ours)


@pytest.mark.parametrize(("n_packings", "repeats"), [(1, 300), (20, 60)])
def test_greedy_values_are_distributed_as_those_of_the_plain_evaluator(n_packings: int, repeats: int) -> None:
    """Objectives could not be compared with published ones."""
    sizes, heuristic = sizes_of(60), uneven(60)
    theirs = [plain.fewest_greedy(heuristic, sizes, 150, seed, n_packings) for seed in range(repeats)]
    ours = [
        ants_packing.fewest_bins_greedy(heuristic, sizes, 150, ants.stream(seed), n_packings)
        for seed in range(4 * repeats)
    ]
    _assert_alike(theirs, ours)


def _assert_alike(theirs: list[int], ours: list[int]) -> None:
    error = np.hypot(np.std(theirs) / np.sqrt(len(theirs)), np.std(ours) / np.sqrt(len(ours)))
    assert error > 0
    assert abs(np.mean(ours) - np.mean(theirs)) < 3.5 * error


def test_pairs_are_marked_as_by_the_plain_evaluator() -> None:
    """Ants would learn something else than in the published evaluator."""
    sizes, affinity, generator = sizes_of(60), uneven(60), ants.stream(0)
    bins, orders, fitness = np.empty((20, 60), np.int64), np.empty((20, 60), np.int64), np.empty(20)
    for ant in range(20):
        _, fitness[ant] = ants_packing.pack(bins[ant], orders[ant], affinity, sizes, 150, False, generator)
    ours = np.random.default_rng(0).random((60, 60))
    theirs = ours.copy()
    ants_packing.mark_bins(ours, orders, bins, fitness, 0.95)
    plain.mark(theirs, list(bins), list(fitness), 0.95)
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_scale_and_clipping_are_the_published_ones() -> None:
    """Values far apart would count otherwise than in the published evaluator."""
    problem, matrix = AcoBpp(size=200, n_instances=1), uneven(200) * 1e9
    [one] = problem.instances
    stream = ants.stream(problem.seed(0))
    expected = ants_packing.fewest_bins_greedy(plain.normalised(matrix), one.sizes, 150, stream, 200)
    assert problem.score(one, matrix) == problem.score(one, np.clip(matrix, 1e-6, 1e6)) == expected
    assert problem.score(one, matrix) != problem.score(one, matrix / 1e9)


def test_published_settings_are_used() -> None:
    """Objectives would be those of another colony than the published one."""
    assert (aco_bpp.N_ANTS, aco_bpp.N_ITERATIONS, aco_bpp.DECAY, aco_bpp.N_PACKINGS) == (20, 15, 0.95, 200)


def test_training_and_test_sets_have_their_own_objectives() -> None:
    """Training would be as slow as a test, or a test as coarse as training."""
    train, test = (AcoBpp(split=split, size=200, n_instances=1) for split in ("train", "test"))
    [one] = train.instances
    heuristic = plain.normalised(uneven(200))
    greedy = ants_packing.fewest_bins_greedy(heuristic, one.sizes, 150, ants.stream(one.seed), 200)
    drawn = ants_packing.fewest_bins(heuristic, one.sizes, 150, ants.stream(one.seed), 20, 15, 0.95)
    assert greedy != drawn
    assert train.score(one, uneven(200)) == greedy
    assert test.score(one, uneven(200)) == drawn


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize(
    ("sizes", "bins"),
    [([150], 1), ([1], 1), ([75, 75], 1), ([76, 75], 2), ([150] * 5, 5), ([50] * 9, 3), ([1] * 200, 2)],
)
def test_small_cases_have_the_only_number_of_bins(split: str, sizes: list[int], bins: int) -> None:
    """The objective would be something else than the number of bins."""
    instance = Items(np.array(sizes), 1)
    problem = AcoBpp(split=split, size=len(sizes), n_instances=1)
    assert problem.score(instance, np.ones((len(sizes), len(sizes)))) == bins


@pytest.mark.parametrize("size", [0, -3, 151, 20.5, 1e300])
def test_impossible_sizes_are_named(size: float) -> None:
    """An item that fits nowhere would be packed all the same, or cut."""
    with pytest.raises(UserError, match=r"Item 1 of instance 3 of aco_bpp has size .*whole numbers from 1 to .*150"):
        _items(np.array([30, size]), 1, 3)
