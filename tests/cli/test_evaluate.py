"""`eoh-esopt evaluate`: values as tables and for programs, exit codes, and what is wrong with what it is given."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from user_problems import FULLEST, changed, put

from operators.records import Status
from problems import registry
from problems.references import references
from problems.tsp_construct import SETS

Call = Callable[..., tuple[int, str, str]]
PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd"
HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
NEAREST = HEAD + "    return unvisited_nodes[0]\n"
TSP = ("--problem", "tsp_construct", "--workers", "2")
SMALL = (*TSP, "--size", "20", "--instances", "3")


@pytest.fixture
def nearest(tmp_path: Path) -> str:
    """A file that holds the nearest neighbour heuristic."""
    return put(tmp_path, NEAREST, "nearest.py")


def mean(split: str, size: int, count: int, **selection: Any) -> float:
    """Of the nearest neighbour tours."""
    problem = registry.get("tsp_construct", split=split, size=size, n_instances=count, **selection)
    found = references(problem)[0].mean
    assert found is not None
    return found


def test_help_shows_examples(call: Call) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, err = call("evaluate", "--help")
    assert (code, err) == (0, "")
    assert out.partition("Example")[2].splitlines()[1].strip().startswith("eoh-esopt evaluate")


def test_the_table_shows_the_heuristic_beside_what_is_known(call: Call, nearest: str) -> None:
    """Else the user does not see whether the heuristic is any good."""
    code, out, err = call("evaluate", nearest, *SMALL, "--split", "test")
    assert (code, err) == (0, "")
    assert "tsp_construct test20, 3 instances: tour length, lower is better" in out
    lines = [line for line in out.splitlines() if line.startswith("│")]
    cells = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in lines}
    assert cells["this heuristic"] == cells["nearest neighbour"] == f"{mean('test', 20, 3):.4f}"


def test_json_is_all_there_is_on_stdout(call: Call, nearest: str) -> None:
    """Else a program that reads the output stumbles over progress or a title."""
    code, out, err = call("evaluate", nearest, *SMALL, "--split", "val", "--format", "json")
    assert (code, err) == (0, "")
    [found] = json.loads(out)
    assert (found["problem"], found["set"], found["solved"]) == ("tsp_construct", "val20", 3)
    assert found["mean"] == pytest.approx(mean("val", 20, 3), rel=1e-9)
    assert [row["instance"] for row in found["instances"]] == [0, 1, 2]


def test_csv_has_a_row_for_each_instance_of_each_size(call: Call, nearest: str) -> None:
    """Else a user cannot put values of several sizes into one table."""
    code, out, err = call("evaluate", nearest, *TSP, "--size", "20, 12", "--instances", "2", "--format", "csv")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["set"], row["instance"]) for row in rows] == [
        ("test20", "0"),
        ("test20", "1"),
        ("test12", "0"),
        ("test12", "1"),
    ]
    assert np.mean([float(row["value"]) for row in rows[2:]]) == pytest.approx(mean("test", 12, 2))


def test_all_published_sizes_when_nothing_is_said(call: Call, nearest: str) -> None:
    """Else a result would be quoted for the training set."""
    code, out, _ = call("evaluate", nearest, *TSP, "--instances", "1", "--format", "json")
    assert code == 0
    assert [one["set"] for one in json.loads(out)] == [f"test{size}" for size in SETS.sizes("test")]


def test_a_failed_instance_ends_in_exit_code_1(call: Call, tmp_path: Path) -> None:
    """Else a script takes a mean that is none for a result."""
    first = float(registry.get("tsp_construct", split="test", size=20).instances[1].distances[0][1])
    here = f"    if distance_matrix[0][1] == {first!r}: raise KeyError('[/no] here')\n"
    path = put(tmp_path, HEAD + here + NEAREST.removeprefix(HEAD), "fails.py")
    code, out, err = call("evaluate", path, *SMALL)
    assert (code, err) == (1, "")
    assert "1 of 3 instances failed, so there is no mean: raised 1" in out
    assert "instance 1: raised, KeyError: '[/no] here' (line 2)" in out
    code, out, _ = call("evaluate", path, *SMALL, "--format", "json")
    assert code == 1
    [found] = json.loads(out)
    assert found["mean"] is None
    assert [row["status"] for row in found["instances"]] == ["ok", "raised", "ok"]


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def select_next_node(:\n", Status.SYNTAX),
        ("", Status.WRONG_NAME),
        ("import time\ntime.sleep(9)\n", Status.TIMEOUT),
    ],
)
def test_a_file_that_is_no_heuristic(call: Call, tmp_path: Path, source: str, status: Status) -> None:
    """Else the user gets an error that does not say what is wrong with the heuristic."""
    path = put(tmp_path, source, "none.py")
    limit = ("--timeout", "0.3") if status is Status.TIMEOUT else ()
    code, out, err = call("evaluate", path, *SMALL, *limit)
    assert (code, err) == (1, "")
    assert f"3 of 3 instances failed, so there is no mean: {status.value} 3" in out


def test_a_users_own_problem(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what a search found for a user's own problem cannot be measured."""
    put(tmp_path)
    put(tmp_path, FULLEST, "mine.py")
    monkeypatch.chdir(tmp_path)
    code, out, err = call("evaluate", "mine.py", "--problem", "my_problem.py", "--workers", "2")
    assert (code, err) == (0, "")
    assert "OnlineBinPacking all, 5 instances: bins, lower is better" in out
    code, out, _ = call("evaluate", "mine.py", "--problem", "my_problem.py:OnlineBinPacking", "--format", "csv")
    assert code == 0
    assert len(out.splitlines()) == 6


def test_a_users_own_sizes(call: Call, tmp_path: Path) -> None:
    """Else a user's problem can be evaluated on the instances of the search only."""
    sized = changed(("__init__(self)", "__init__(self, size=120)"), ("(5, 120)", "(5, size)"))
    path, mine = put(tmp_path, sized), put(tmp_path, FULLEST, "mine.py")
    code, out, _ = call("evaluate", mine, "--problem", path, "--size", "4,8", "--format", "json", "--workers", "1")
    assert code == 0
    assert [one["set"] for one in json.loads(out)] == ["4", "8"]
    assert [one["mean"] < limit for one, limit in zip(json.loads(out), (4, 8), strict=True)] == [True, True]
    code, out, err = call("evaluate", mine, "--problem", path, "--split", "test")
    assert (code, out) == (2, "")
    assert "'split'" in err


@pytest.mark.parametrize("source", ["our files", "the published files"])
def test_published_files(
    call: Call, nearest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Else results on the published instances need another program: workers have a working folder of their own."""
    if source == "our files":
        (tmp_path / "tsp_constructive").mkdir()
        points = np.random.RandomState(3).random_sample((2, 20, 2))
        np.save(tmp_path / "tsp_constructive/test20_dataset.npy", points)
        monkeypatch.chdir(tmp_path)
        data = "."
    elif PUBLISHED.exists():
        monkeypatch.chdir(PUBLISHED.parent)
        data = PUBLISHED.name
    else:
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    arguments = (*TSP, "--size", "20", "--instances", "2", "--data", data, "--format", "json")
    code, out, err = call("evaluate", nearest, *arguments)
    assert (code, err) == (0, "")
    [found] = json.loads(out)
    assert found["mean"] == pytest.approx(mean("test", 20, 2, data=data), rel=1e-9)
    assert (found["mean"] == pytest.approx(mean("test", 20, 2))) == (source != "our files")


def test_progress_goes_to_stderr(call: Call, nearest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `evaluate ... > values.csv` on a terminal mixes a progress bar into the values."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    code, out, err = call("evaluate", nearest, *SMALL, "--format", "csv")
    assert code == 0
    assert "test20" in err
    assert [line.split(",")[2] for line in out.splitlines()] == ["instance", "0", "1", "2"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("NEAREST", *TSP, "--size", "many"), "--size takes whole numbers with commas between them, not 'many'"),
        (("NEAREST", *TSP, "--size", "20,"), "'20,'"),
        (("NEAREST", *TSP, "--size", "20.5"), "'20.5'"),
        (("NEAREST", *TSP, "--size", "0"), "size of tsp_construct"),
        (("NEAREST", *TSP, "--size", "20", "--instances", "0"), "n_instances of tsp_construct"),
        (("NEAREST", *TSP, "--size", "20", "--instances", "1001"), "1000 instances in test20, not 1001"),
        (("NEAREST", *TSP, "--split", "tests"), "'tests' of tsp_construct. Choose one of: train, val, test"),
        (("NEAREST", *TSP, "--split", "tests", "--size", "20"), "'tests' of tsp_construct"),
        (("NEAREST", *TSP, "--size", "20", "--data", "none"), "does not exist"),
        (("NEAREST", *TSP, "--size", "20", "--timeout", "-1"), "time limit"),
        (("NEAREST", *TSP, "--size", "20", "--isolation", "some"), "'some'"),
        (("NEAREST", *TSP[:2], "--size", "20", "--workers", "0"), "at least 1, not 0"),
        (("NEAREST", "--problem", "tsp"), "Unknown problem 'tsp'"),
        (("NEAREST", "--problem", "none.py"), "There is no file"),
        (("NEAREST",), "--problem"),
        (TSP, "HEURISTIC"),
        (("none.py", *SMALL), "Cannot read the heuristic none.py"),
        ((".", *SMALL), "Cannot read the heuristic ."),
        (("LATIN", *SMALL), "UTF-8"),
    ],
)
def test_bad_input_is_told_in_one_line(
    call: Call, tmp_path: Path, nearest: str, arguments: tuple[str, ...], told: str
) -> None:
    """Else a typing error ends in a traceback, or in values of something else."""
    (tmp_path / "latin.py").write_bytes("# \xe9\n".encode("latin-1"))
    files = {"NEAREST": nearest, "LATIN": str(tmp_path / "latin.py")}
    code, out, err = call("evaluate", *(files.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert told in err
