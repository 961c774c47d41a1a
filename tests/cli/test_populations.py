"""Runs that start from a host's population, and populations of runs in a host's form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_server import FakeServer, says, writes
from test_bad_input import refused
from test_run_openai import ENDPOINT, SEARCH, clear

from eoh_esopt.cli.main import main
from eoh_esopt.engine.events import EVENTS, GIVEN, Event, read_events
from problems.tsp_construct import TASK

Call = Callable[..., tuple[int, str, str]]
NEAREST = "np.argmin(distance_matrix[current_node][unvisited_nodes])"
HEAD = f"def {TASK.function}({', '.join(TASK.arguments)}):"
FAR = f"{HEAD}\n    return unvisited_nodes[{NEAREST.replace('argmin', 'argmax')}]"
FAILING = f"{HEAD}\n    return unknown_name"
POPULATION = [
    {"algorithm": "Go far.", "code": f"import numpy as np\n{FAR}", "objective": -100.0, "other_inf": None},
    {"algorithm": "Fail.", "code": FAILING, "objective": 0.5, "other_inf": None},
]


class Begun(NamedTuple):
    """A run that began with a host's population."""

    run: Path
    cassette: Path


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    root = tmp_path_factory.mktemp("begun")
    (root / "population_generation_3.json").write_text(json.dumps(POPULATION))
    with FakeServer(says(writes)) as server, pytest.MonkeyPatch.context() as patch:
        options = ("--base-url", f"127.0.0.1:{server.server_port}", "--cassette", root / "cassette.jsonl")
        command = (*ENDPOINT, *SEARCH, *options, "--init-from", root, "--out", root / "run")
        patch.setattr("sys.argv", ["eoh-esopt", *map(str, command)])
        clear(patch)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code is None
    return Begun(root / "run", root / "cassette.jsonl")


def batches(run: Path, name: str) -> list[Event]:
    return [one for one in read_events(run) if one["event"] == "batch" and one["operator"] == name]


def test_given_programs_take_the_place_of_the_start(begun: Begun) -> None:
    """Without it the programs of a host would be ignored, or their objectives be believed."""
    [given] = batches(begun.run, "given")
    assert given["statuses"] == ["ok", "raised"]
    assert given["objectives"][0] > 1, "the objective of the file was believed"
    assert given["ids"][0] == len(TASK.seeds)
    assert given["ids"][1] not in given["population"], "a program that fails got into the population"
    assert batches(begun.run, "i1") == []
    assert read_events(begun.run)[-1]["ledger"]["start_candidates"] == 0


def test_resume_has_the_given_programs_still(call: Call, begun: Begun, tmp_path: Path) -> None:
    """Without it a run could not go on once the host's file has changed, or would go on from other programs."""
    run = shutil.copytree(begun.run, tmp_path / "run")
    lines = (run / EVENTS).read_text().splitlines(keepends=True)
    (run / EVENTS).write_text("".join(lines[: len(lines) // 2]))
    code, _, err = call("run", "--resume", run)
    assert code == 0, err
    assert [one["objectives"] for one in batches(run, "m2")] == [one["objectives"] for one in batches(begun.run, "m2")]
    (run / GIVEN).unlink()
    (run / EVENTS).write_text("".join(lines[: len(lines) // 2]))
    assert "start_population.json" in refused(call, run, "run", "--resume", run)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"algorithm": "", "code": FAILING}], "1 raised. The first fails by NameError"),
        (
            [{"algorithm": "", "code": "def value(x):\n    return x"}],
            f"1 wrong_name. The first fails by no function {TASK.function}",
        ),
        ([{"algorithm": ""}], "entry 1 has neither code nor function"),
    ],
)
def test_populations_that_no_run_can_start_from(call: Call, tmp_path: Path, content: Any, words: str) -> None:
    """Without it a population of another problem shows after the model was loaded, or not at all."""
    path = tmp_path / "population.json"
    path.write_text(json.dumps(content))
    options = ("--base-url", "127.0.0.1:9", "--out", tmp_path / "run")
    assert words in refused(call, tmp_path, *ENDPOINT, *SEARCH, *options, "--init-from", path)


def test_samples_have_no_start_population(call: Call, tmp_path: Path) -> None:
    """Without it the option would be taken and ignored."""
    options = ("--method", "sample", "--budget", "8", "--init-from", tmp_path, "--out", tmp_path / "run")
    message = refused(call, tmp_path, "run", "tsp_construct", "--model", "m", *options)
    assert "method sample has none" in message


def test_exported_populations_are_eohs(call: Call, begun: Begun, tmp_path: Path) -> None:
    """Without it EoH could not read them, or they would hold other candidates than the run did."""
    code, out, err = call("export-population", begun.run, "-o", tmp_path / "out")
    assert code == 0, err
    pops = tmp_path / "out" / "results" / "pops"
    log = [one for one in read_events(begun.run) if one["event"] == "batch"]
    last = {one["generation"]: one for one in log}
    assert {path.name for path in pops.iterdir()} == {f"population_generation_{n + 1}.json" for n in last}
    for generation, batch in last.items():
        population = json.loads((pops / f"population_generation_{generation + 1}.json").read_text())
        assert [one["other_inf"]["esopt"]["id"] for one in population] == batch["population"]
        assert all(set(one) == {"algorithm", "code", "objective", "other_inf"} for one in population)
        assert all(one["code"].startswith(TASK.imports) and f"def {TASK.function}" in one["code"] for one in population)
        objectives = [one["objective"] for one in population]
        assert objectives == sorted(objectives)
        assert objectives[0] == pytest.approx(batch["best"], abs=1e-5)
        best = json.loads(
            (tmp_path / "out/results/pops_best" / f"population_generation_{generation + 1}.json").read_text()
        )
        assert best == population[0]
    assert f"continue_id={len(last) - 1}" in out


def test_exported_population_starts_the_next_run(call: Call, begun: Begun, tmp_path: Path) -> None:
    """Without it the two directions would speak of two formats."""
    assert call("export-population", begun.run, "-o", tmp_path / "out")[0] == 0
    with FakeServer(says(writes)) as server:
        options = ("--base-url", f"127.0.0.1:{server.server_port}", "--init-from", tmp_path / "out")
        code, _, err = call(*ENDPOINT, *SEARCH, *options, "--out", tmp_path / "run")
    assert code == 0, err
    [given] = batches(tmp_path / "run", "given")
    best = min(one for one in given["objectives"] if one is not None)
    assert best == read_events(begun.run)[-1]["best"]["objective"]


def test_exports_that_cannot_be(call: Call, begun: Begun, tmp_path: Path) -> None:
    """Without it a wrong folder ends in a traceback, or earlier files are overwritten."""
    assert "Give the folder of a run" in refused(call, tmp_path, "export-population", tmp_path, "-o", tmp_path / "out")
    assert "is not empty" in refused(call, begun.run, "export-population", begun.run, "-o", begun.run.parent)
    attached = shutil.copytree(begun.run, tmp_path / "esopt")
    lines = (attached / EVENTS).read_text().splitlines(keepends=True)
    start = json.dumps({**json.loads(lines[0]), "host": {"name": "EoH 0.2"}})
    (attached / EVENTS).write_text("".join([start + "\n", *lines[1:]]))
    message = refused(call, tmp_path, "export-population", attached, "-o", tmp_path / "out")
    assert "belongs to a search of EoH 0.2" in message
