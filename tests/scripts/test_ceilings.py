"""The command that makes the reference values: its solvers against enumeration, and what it keeps and rounds."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from operators.errors import UserError
from problems import registry
from problems.tours import distance_matrix, length

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import ceilings  # noqa: E402
import solvers  # noqa: E402

EXTRA = "needs the extra 'solvers' (pip install 'eoh-esopt[solvers]')"


def shortest(distances: NDArray[np.float64]) -> float:
    """Length of the shortest tour, by trying all."""
    rest = itertools.permutations(range(1, len(distances)))
    return min(length(np.array([0, *order]), distances) for order in rest)


def cheapest(distances: NDArray[np.float64], demands: NDArray[np.int64], capacity: int) -> float:
    """Cost of the cheapest routes, by trying all orders and all places to return."""
    best = np.inf
    count = len(demands)
    for order in itertools.permutations(range(1, count + 1)):
        for back in itertools.product((False, True), repeat=count - 1):
            stops = [0, order[0]]
            for node, returns in zip(order[1:], back, strict=True):
                stops += [0, node] if returns else [node]
            loads = [sum(demands[node - 1] for node in part) for part in parts(stops)]
            if max(loads) <= capacity:
                best = min(best, length(np.array(stops), distances))
    return best


def parts(stops: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for node in stops:
        if node == 0:
            found.append([])
        else:
            found[-1].append(node)
    return found


def fewest_bins(sizes: list[int], capacity: int) -> int:
    """By trying all ways to put the items, one after the other, into bins."""
    states = {()}
    for size in sizes:
        more = set()
        for loads in states:
            more.add(tuple(sorted((*loads, size))))
            for place, load in enumerate(loads):
                if load + size <= capacity:
                    more.add(tuple(sorted((*loads[:place], load + size, *loads[place + 1 :]))))
        states = more
    return min(len(loads) for loads in states)


@pytest.mark.parametrize("near", [1, 12])
@pytest.mark.parametrize("seed", range(6))
def test_shortest_tour_is_the_shortest(seed: int, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tour called the optimum would not be, as where the relaxation never got an edge that it starts without."""
    monkeypatch.setattr(solvers, "NEAR", near)
    distances = distance_matrix(np.random.default_rng(seed).random((8, 2)))
    best = solvers.shortest_tour(distances, np.arange(8), 60.0)
    assert best is not None
    assert length(best, distances) == pytest.approx(shortest(distances), abs=1e-9)


def test_shortest_tour_cuts_subtours_off() -> None:
    """Clusters far from each other would each keep a tour of its own."""
    generator = np.random.default_rng(0)
    points = generator.random((8, 2)) + np.repeat([[0.0, 0.0], [9.0, 0.0]], 4, axis=0)
    distances = distance_matrix(points)
    best = solvers.shortest_tour(distances, np.arange(8), 60.0)
    assert best is not None
    assert length(best, distances) == pytest.approx(shortest(distances), abs=1e-9)


def test_no_time_means_no_proof() -> None:
    """A search that was broken off would pass for a proof."""
    distances = distance_matrix(np.random.default_rng(0).random((8, 2)))
    assert solvers.shortest_tour(distances, np.arange(8), 0.0) is None


@pytest.mark.parametrize("seed", range(5))
def test_knapsack_is_the_optimum(seed: int) -> None:
    """Another set of items would be worth more."""
    weights, values = np.random.default_rng(seed).random((2, 10))
    choices = np.array(list(itertools.product((0.0, 1.0), repeat=10)))
    fits = choices @ weights <= 2.0
    solved = solvers.knapsack(weights, values, 2.0, 10.0)
    assert solved.proven
    assert solved.value == pytest.approx((choices[fits] @ values).max(), abs=1e-9)


def test_knapsack_takes_nothing_over_the_capacity() -> None:
    """The solver's tolerance of 1e-6 would let a set pass that does not fit."""
    solved = solvers.knapsack(np.array([0.5, 0.5 + 1e-8, 0.4]), np.array([1.0, 1.0, 0.3]), 1.0, 10.0)
    assert solved == solvers.Solved(pytest.approx(1.3), True)


@pytest.mark.parametrize("seed", range(5))
def test_bins_are_the_fewest(seed: int) -> None:
    """A bound would be too high, or called an optimum that it is not."""
    sizes = np.random.default_rng(seed).integers(20, 101, 9)
    wanted = fewest_bins(sizes.tolist(), 150)
    assert solvers.bins(sizes, 150, 10.0) == solvers.Solved(wanted, True)
    assert solvers.martello_toth(sizes, 150) <= wanted


@pytest.mark.parametrize(
    ("sizes", "bound"), [([51, 50, 50], 2), ([100, 60, 41, 40, 30], 3), ([60, 60, 60], 3), ([10] * 10, 1)]
)
def test_lower_bound_of_martello_and_toth(sizes: list[int], bound: int) -> None:
    """A bound above the optimum would be beaten."""
    assert solvers.martello_toth(np.array(sizes), 100) == bound


@pytest.mark.parametrize("seed", range(3))
def test_routes_are_the_cheapest(seed: int) -> None:
    """The best known routes would break the capacity, leave a customer out, or be poor ones."""
    pytest.importorskip("pyvrp", reason=EXTRA)
    generator = np.random.default_rng(seed)
    distances = distance_matrix(generator.random((6, 2)))
    demands = generator.integers(1, 10, 5)
    solved = solvers.vehicle_routes(distances, demands, 15, 0.2, seed)
    assert solved.value == pytest.approx(cheapest(distances, demands, 15), abs=1e-9)


def test_the_command_makes_a_file_and_leaves_what_is_proven(tmp_path: Path) -> None:
    """The stored references could not be made again."""
    for package in ("pyvrp", "joblib"):
        pytest.importorskip(package, reason=EXTRA)
    command = [sys.executable, str(SCRIPTS / "ceilings.py"), "tsp_construct", "--split", "train", "--size", "7"]
    options = ["--instances", "3", "--seconds", "0.05", "--jobs", "2", "--folder", str(tmp_path)]
    path = tmp_path / "tsp_construct.json"
    made = []
    for _ in range(2):
        result = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    problem = registry.get("tsp_construct", size=7, n_instances=3)
    stored = json.loads(made[0])
    for instance in problem.instances:
        entry = stored["instances"][problem.key(instance)]
        assert entry["proven"]
        assert entry["ceiling"] == pytest.approx(shortest(instance.distances), abs=2e-9)
        assert entry.keys() == {"ceiling", "proven", *problem.baselines}
    assert "0.05 s an instance" in stored["ceiling"]["by"]


def test_help_shows_examples() -> None:
    """Nobody would know how to call it."""
    result = subprocess.run(
        [sys.executable, str(SCRIPTS / "ceilings.py"), "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "python scripts/ceilings.py tsp_construct --size 100" in result.stdout


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user would see an import error instead of what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(UserError, match=r"joblib, pyvrp.*pip install 'eoh-esopt\[solvers\]'"):
        ceilings.check_packages(["tsp_construct"])


@pytest.mark.parametrize(
    ("name", "old", "new", "kept"),
    [
        ("tsp_construct", {"ceiling": 5.0}, {"ceiling": 6.0}, 5.0),
        ("tsp_construct", {"ceiling": 6.0}, {"ceiling": 5.0}, 5.0),
        ("tsp_construct", {"ceiling": 5.0}, {"ceiling": 5.1, "proven": True}, 5.1),
        ("tsp_construct", {"ceiling": 5.1, "proven": True}, {"ceiling": 5.0}, 5.1),
        ("asp_construct", {"ceiling": 6.0}, {"ceiling": 5.0}, 6.0),
        ("kp_construct", {"ceiling": 6.0}, {"ceiling": 5.0}, 5.0),
        ("tsp_construct", {}, {"ceiling": 5.0}, 5.0),
    ],
)
def test_the_better_ceiling_is_kept(name: str, old: dict[str, Any], new: dict[str, Any], kept: float) -> None:
    """A later run with less time would make a ceiling worse, or a bound looser."""
    problem = registry.get(name, n_instances=1)
    baselines = dict.fromkeys(problem.baselines, 1.0)
    merged = ceilings.merge(old, {**new, **baselines}, problem, ceilings.methods()[name])
    assert merged["ceiling"] == kept
    assert merged.get("proven", False) == (old.get("proven", False) or new.get("proven", False))


@pytest.mark.parametrize("value", [5.70444876752606, 1 / 3, 199.0, 0.1 + 0.2])
def test_an_optimal_solution_never_beats_the_rounded_ceiling(value: float) -> None:
    """Reports would show a gap below zero."""
    assert value - 1e-9 <= ceilings.rounded(value, maximise=False) <= value
    assert value <= ceilings.rounded(value, maximise=True) <= value + 1.001e-9


def test_a_broken_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A misspelt problem would be noticed after hours."""
    command = [sys.executable, str(SCRIPTS / "ceilings.py"), "kp_construct", "tsp", "--folder", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert "There are no ceilings of 'tsp'. Problems: aco_bpp" in result.stderr
    assert list(tmp_path.iterdir()) == []
