"""Runs with low-rank noise: named everywhere, refused where there is none, and made again from their histories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eoh_esopt.engine.config import RunConfig, load_config
from eoh_esopt.engine.events import CONFIG, EVENTS, HISTORY, SUMMARY, read_events
from eoh_esopt.engine.history import History, load_history
from operators.errors import UserError
from operators.lowrank import DEFAULT_RANK, LOWRANK_VERSION

FULL = History("m", "ab" * 32, "full", "exact", "bfloat16")
LOWRANK = replace(FULL, rank=2)
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "CI": "true", "COLUMNS": "120"}
OPTIONS = ["--noise", "lowrank", "--rank", "2", "--method", "esopt-sample", "--directions", "4", "--budget", "7"]
SIZES = ["--population", "2", "--max-new-tokens", "48", "--workers", "2"]


def settings(**changes: Any) -> RunConfig:
    return RunConfig("tsp_construct", "some-model", **changes)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown noise": ({"noise": "sparse"}, "'sparse'.*full, lowrank"),
    "rank of full noise": ({"rank": 2}, "--rank belongs to --noise lowrank"),
    "rank 0": ({"noise": "lowrank", "rank": 0}, "rank must be at least 1, not 0"),
    "norms": ({"noise": "lowrank", "scope": "norms"}, "no low-rank noise for scope 'norms'"),
    "subtract": ({"noise": "lowrank", "restore": "subtract"}, "'subtract' does not exist for low-rank noise"),
    "served": ({"noise": "lowrank", "backend": "served", "servers": "localhost"}, "--backend served: use transf"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_low_rank_noise_is_refused_where_there_is_none(changes: dict[str, Any], message: str) -> None:
    """Else a run uses another noise than the user thinks."""
    with pytest.raises(UserError, match=message):
        settings(**changes)


def test_the_rank_is_filled_in_for_low_rank_noise_only() -> None:
    """Else the run's folder does not say what its directions were."""
    assert settings(noise="lowrank").resolved(None).rank == DEFAULT_RANK
    assert settings(noise="lowrank", rank=4).resolved(None).lowrank == 4
    full = settings().resolved(None)
    assert (full.noise, full.rank, full.lowrank) == ("full", None, None)


def test_settings_of_earlier_releases_mean_full_noise(tmp_path: Path) -> None:
    """Else runs begun before there was another noise could not be resumed."""
    fields = json.loads(settings().to_json())
    del fields["noise"], fields["rank"]
    (tmp_path / CONFIG).write_text(json.dumps(fields))
    assert load_config(tmp_path / CONFIG) == settings()


def test_a_history_names_its_noise(tmp_path: Path) -> None:
    """Else its seeds would be replayed as directions of the other noise. Those of full noise stay as they were."""
    fields = json.loads(LOWRANK.to_json())
    assert (fields["noise"], fields["lowrank_version"], fields["rank"]) == ("lowrank", LOWRANK_VERSION, 2)
    assert not {"noise", "lowrank_version", "rank"} & json.loads(FULL.to_json()).keys()
    for history in (FULL, LOWRANK):
        (tmp_path / HISTORY).write_text(history.to_json())
        assert load_history(tmp_path) == history


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lowrank_version": LOWRANK_VERSION + 1}, f"'lowrank', version {LOWRANK_VERSION + 1}.*release that made it"),
        ({"noise": "sparse"}, r"'sparse'.*release that made it"),
        ({"noise": "full", "lowrank_version": None}, "rank 2 does not go with noise 'full'"),
        ({"rank": None}, "rank None does not go with noise 'lowrank'"),
        ({"rank": 0}, "rank 0 does not go with"),
    ],
)
def test_a_history_of_an_unknown_noise_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Else it is replayed to weights that nobody had."""
    (tmp_path / HISTORY).write_text(json.dumps({**json.loads(LOWRANK.to_json()), **changes}))
    with pytest.raises(UserError, match=message):
        load_history(tmp_path)


def call(*arguments: object) -> str:
    """The standard output of a command that succeeds."""
    command = [sys.executable, "-m", "eoh_esopt", *map(str, arguments)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def finished(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run with an update, and what it printed: with few candidates, all may be worth the same with one seed."""
    root = tmp_path_factory.mktemp("lowrank-run")
    for seed in (3, 4, 5, 6):
        out = root / f"seed-{seed}"
        where = ["--model", small_model, "--out", out, "--seed", seed]
        output = call("run", "tsp_construct", *where, *OPTIONS, *SIZES)
        if json.loads((out / SUMMARY).read_text())["ledger"]["updates"]:
            break
    return out, output


@pytest.mark.model
def test_a_run_says_everywhere_that_its_noise_is_low_rank(finished: tuple[Path, str]) -> None:
    """Else its results are taken for those of the paper's method."""
    folder, output = finished
    summary = json.loads((folder / SUMMARY).read_text())
    assert (summary["noise"], summary["rank"]) == ("lowrank", 2)
    assert load_history(folder).rank == 2
    model = read_events(folder)[0]["model"]
    assert (model["noise"], model["rank"], model["scope"]) == ("lowrank", 2, "full")
    assert model["scope_elements"] < model["parameters"]
    assert "lowrank noise of rank 2" in output.split("Taking the checksum")[1].split("valid")[0]
    assert "directions with lowrank noise of rank 2, not the paper's full noise" in output
    assert summary["weights_before"] != summary["weights_after"]


@pytest.mark.model
def test_a_batch_of_directions_is_written_at_once(finished: tuple[Path, str]) -> None:
    """Else the noise costs search quality, perhaps, and saves nothing."""
    replies = [event for event in read_events(finished[0]) if event["event"] == "replies"]
    assert len({one["direction"] for one in replies[0]["candidates"]}) == 4


@pytest.mark.model
def test_low_rank_weights_are_made_again_and_exported(finished: tuple[Path, str], tmp_path: Path) -> None:
    """Else what was learnt cannot be used, and nobody can check it."""
    folder, _ = finished
    output = call("replay", folder, "--save", tmp_path / "adapted")
    assert "The weights equal the run's." in output
    assert json.loads((folder / SUMMARY).read_text())["weights_after"] in output
    card = (tmp_path / "adapted" / "README.md").read_text()
    assert "| noise | lowrank, rank 2 |" in card
    assert "moved the matrices of its linear layers, by noise of rank 2 (scope `full`)" in card


@pytest.mark.model
def test_a_low_rank_run_that_was_cut_short_ends_the_same(finished: tuple[Path, str], tmp_path: Path) -> None:
    """Else a power cut costs the run, or the resumed run is another one."""
    folder, _ = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    lines = (copy / EVENTS).read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in lines]
    (copy / EVENTS).write_text("".join(lines[: kinds.index("update") + 1]))
    (copy / SUMMARY).unlink()
    (copy / HISTORY).unlink()
    call("run", "--resume", copy)
    assert (copy / HISTORY).read_text() == (folder / HISTORY).read_text()
