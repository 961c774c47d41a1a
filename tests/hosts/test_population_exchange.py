"""Populations between runs of ours and a real EoH 0.2, in both directions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_server import FakeServer, says
from host_runs import Ended, find, run

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import read_events
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.run import start
from eoh_esopt.hosts.export_population import export_populations
from eoh_esopt.hosts.populations import read_population
from operators.task import SeedHeuristic
from problems.tsp_construct import TASK


def our_run(folder: Path, given: list[SeedHeuristic], init_from: Path | None = None) -> Path:
    """A run at an endpoint that writes no program."""
    with FakeServer(says(lambda body: "No.")) as server:
        config = RunConfig(
            "tsp_construct",
            "org/small",
            method="eoh",
            backend="openai",
            base_url=f"http://127.0.0.1:{server.server_port}",
            budget=4,
            population=4,
            directions=2,
            init_from=None if init_from is None else str(init_from),
        )
        start(config, folder, workers=2, listener=Listener(), notify=lambda _: None, given=given)
    return folder


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A search of EoH 0.2 on the problem that our runs search on."""
    return run(find("eoh02"), tmp_path_factory.mktemp("exchange"), "exchange", one={"eoh": {"n_pop": 1}})["one"]


def test_our_run_starts_from_eohs_files(searched: Ended, tmp_path: Path) -> None:
    """Without it a user of EoH could not go on here with what they have found."""
    results = searched.folder / "results"
    given = read_population(results, TASK.imports)
    assert [one.code.strip() for one in given] == [one["code"].strip() for one in searched.population(1)]
    assert len(read_population(next((results / "samples").glob("samples_*~*.json")), TASK.imports)) >= 8
    folder = our_run(tmp_path / "run", given, results)
    [batch] = [one for one in read_events(folder) if one["event"] == "batch" and one["operator"] == "given"]
    assert set(batch["statuses"]) == {"ok"}


@pytest.mark.parametrize("way", ["use_continue", "use_seed"])
def test_eoh_goes_on_from_ours(searched: Ended, tmp_path: Path, way: str) -> None:
    """Without it what was found here could not be taken back to EoH."""
    given = read_population(searched.folder / "results", TASK.imports)
    run_folder = our_run(tmp_path / "run", given, searched.folder)
    newest = export_populations(run_folder, tmp_path / "out")[-1]
    ours = json.loads(newest.read_text())
    options = {
        "use_continue": {"use_continue": True, "continue_path": str(newest), "continue_id": 1, "n_pop": 2},
        "use_seed": {"use_seed": True, "seed_path": str(newest), "n_pop": 1},
    }[way]
    ended = run(find("eoh02"), tmp_path, "exchange", one={"eoh": options})["one"]
    assert ended.result["error"] == ""
    assert ended.result["calls"] > 0
    if way == "use_seed":
        assert [one["code"] for one in ended.population(0)] == [one["code"] for one in ours]
    best = ended.population(options["n_pop"])[0]["objective"]
    assert best <= ours[0]["objective"] if way == "use_continue" else best > 0
