"""The stored reference values: found for whatever part of a set, from wherever, and never beaten by a baseline."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from problems import registry
from problems.base import Problem
from problems.references import DATA, Reference, ceiling_of, gap, references

PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd"

STORED: dict[str, dict[str, Any]] = {
    name: json.loads((DATA / f"{name}.json").read_text())
    for name in registry.names()
    if (DATA / f"{name}.json").exists()
}

SETS = [(name, one) for name in sorted(STORED) for one in STORED[name]["sets"]]

TRAIN_MEANS = {
    "tsp_construct": "5.7044",
    "kp_construct": "40.1890",
    "asp_construct": "3003.0000",
    "aco_tsp": "5.7120",
    "aco_cvrp": "7.8825",
    "aco_bpp": "199.6000",
}


def of_set(name: str, label: str, n_instances: int | None = None, data: str | None = None) -> Problem:
    """The problem on a set such as "test50"."""
    split = label.rstrip("0123456789")
    return registry.get(name, split=split, size=int(label[len(split) :]), n_instances=n_instances, data=data)


def ceiling(problem: Problem) -> Reference:
    found = ceiling_of(references(problem))
    assert found is not None
    return found


def test_every_problem_has_stored_references() -> None:
    """A problem would be shown without the value that nothing beats."""
    assert set(STORED) == set(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_train_and_published_test_sizes_are_stored(name: str) -> None:
    """Reports on a set that people compare on would lack its ceiling."""
    published = importlib.import_module(f"problems.{name}").SETS.published
    assert set(STORED[name]["sets"]) >= {f"{split}{size}" for split, size in published if split != "val"}


@pytest.mark.parametrize(("name", "label"), SETS)
def test_drawn_sets_find_their_values(name: str, label: str) -> None:
    """Keys that depend on anything but the instance would leave values unfound."""
    count = STORED[name]["sets"][label]["instances"]
    found = ceiling(of_set(name, label, count))
    assert found.mean == pytest.approx(STORED[name]["sets"][label]["ceiling"], abs=1e-6)


@pytest.mark.parametrize(("name", "label"), [one for one in SETS if one[0] != "asp_construct"])
def test_published_files_find_the_same_values(name: str, label: str) -> None:
    """Who evaluates on the published files would see no ceiling."""
    if not PUBLISHED.exists():
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    assert references(of_set(name, label, 5, str(PUBLISHED))) == references(of_set(name, label, 5))


@pytest.mark.parametrize("name", registry.names())
def test_part_of_a_set_finds_its_values(name: str) -> None:
    """Values looked up by position in the set would belong to other instances."""
    problem = registry.get(name)
    whole = references(problem)
    problem.instances = list(problem.instances)[2:4] or list(problem.instances)
    count = len(problem.instances)
    start = 2 if len(whole[0].values) > 2 else 0
    assert [one.values for one in references(problem)] == [one.values[start : start + count] for one in whole]


@pytest.mark.parametrize("name", registry.names())
def test_no_baseline_beats_the_ceiling(name: str) -> None:
    """A wrong or wrongly rounded ceiling would show a heuristic as better than the best possible."""
    sense = 1 if registry.get(name, n_instances=1).maximise else -1
    for key, entry in STORED[name]["instances"].items():
        values = {method: value for method, value in entry.items() if method not in ("ceiling", "proven")}
        assert values
        assert all(sense * value <= sense * entry["ceiling"] for value in values.values()), (key, entry)


@pytest.mark.parametrize("name", registry.names())
def test_ceilings_of_the_training_sets(name: str) -> None:
    """Results of runs would be compared with something else than before."""
    assert f"{ceiling(registry.get(name)).mean:.4f}" == TRAIN_MEANS[name]


@pytest.mark.parametrize("name", registry.names())
def test_stored_baselines_are_what_the_code_computes(name: str) -> None:
    """A baseline that was changed would keep its old values on the stored sets alone."""
    problem = registry.get(name)
    for instance in list(problem.instances)[:3]:
        entry = STORED[name]["instances"][problem.key(instance)]
        for method, compute in problem.baselines.items():
            assert compute(instance) == pytest.approx(entry[method], abs=1e-8), method


@pytest.mark.parametrize("name", registry.names())
def test_stored_entries_have_all_baselines(name: str) -> None:
    """Showing a problem would take as long as its baselines take."""
    wanted = {"ceiling", *registry.get(name, n_instances=1).baselines}
    assert all(entry.keys() - {"proven"} == wanted for entry in STORED[name]["instances"].values())


def test_mean_is_unknown_when_a_value_is_missing() -> None:
    """The mean of the easy instances would pass for that of all."""
    assert Reference("best known", (1.0, None)).mean is None
    assert Reference("best known", ()).mean is None
    assert Reference("best known", (1.0, 2.0)).mean == 1.5


def test_a_ceiling_of_some_instances_has_no_mean() -> None:
    """A set with one unknown instance would be compared with the mean of the others."""
    problem = registry.get("tsp_construct", n_instances=2)
    problem.instances = [*problem.instances, *registry.get("tsp_construct", size=7, n_instances=1).instances]
    found = ceiling(problem)
    assert found.values[0] is not None
    assert found.values[2] is None
    assert found.mean is None


def test_unknown_instances_have_baselines_but_no_ceiling() -> None:
    """Sets that nobody stored values for could not be used."""
    found = references(registry.get("tsp_construct", size=7, n_instances=2))
    assert ceiling_of(found) is None
    assert all(one.mean is not None for one in found)


def test_only_proven_ceilings_are_called_the_optimum() -> None:
    """A good solution would be taken for the best possible."""
    assert ceiling(registry.get("kp_construct")).name == "optimum"
    assert ceiling(registry.get("asp_construct", size=21)).name == "best known"


@pytest.mark.parametrize(("value", "maximise", "expected"), [(6.0, False, 0.2), (4.0, True, 0.2), (6.0, True, -0.2)])
def test_gap_is_positive_when_worse(value: float, maximise: bool, expected: float) -> None:
    """Tables would praise the worse heuristic."""
    assert gap(value, 5.0, maximise) == pytest.approx(expected)
    assert np.isfinite(gap(value, -5.0, maximise))
