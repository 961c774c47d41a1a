"""The commands that a page gives make the runs it is about."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from report_runs import Maker

from eoh_esopt.cli.run import run as run_command
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.find_runs import run_folders
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.reports.page.build import build
from eoh_esopt.reports.page.data import read_runs
from eoh_esopt.reports.page.reproduce import command

SETTINGS: list[dict[str, Any]] = [
    {},
    {"method": "eoh", "budget": 77, "dtype": "float32"},
    {"shuffle_rewards": True, "antithetic": True, "momentum": 0.5, "sigma": 0.1, "sigma_final": 0.0, "alpha": 1e-05},
    {"sampling": Sampling(temperature=0.5, max_new_tokens=80), "scope": "norms", "max_batch": 8},
    {"noise": "lowrank", "rank": 2, "shaping": "centred-rank", "timeout": 3.5, "isolation": "none"},
    {"data": "/a folder/with 'quotes'", "reward": "ordered", "prefill": "none"},
]


def parsed(line: str) -> RunConfig:
    """The settings that `eoh-esopt run` would begin with."""
    words = shlex.split(line)
    assert words[:2] == ["eoh-esopt", "run"]
    values = run_command.make_context("run", words[2:]).params
    sampling = Sampling(**{one.name: values[one.name] for one in fields(Sampling)})
    settings = {one.name: values[one.name] for one in fields(RunConfig) if one.name != "sampling"}
    return RunConfig(sampling=sampling, **settings)


@pytest.mark.parametrize("changes", SETTINGS)
def test_the_command_has_the_settings_of_the_run(changes: dict[str, Any]) -> None:
    """Else whoever repeats a run by its report makes another one."""
    config = RunConfig("tsp_construct", "some model", seed=7, **changes).resolved(135_000_000)
    assert parsed(command(config, "7", "runs/a")) == config


def test_an_arm_is_one_loop_over_its_seeds(many_runs: Path) -> None:
    """Else a reader has to copy twenty commands, or misses a seed."""
    made = build(read_runs(run_folders([many_runs]), lambda: None))
    recipes = {recipe.arm: recipe for recipe in made.sections[1].recipes}
    first, line, last = recipes["eoh"].command.splitlines()
    assert (first, last) == ("for seed in 1 2 3; do", "done")
    assert parsed(line.replace("$seed", "3")) == next(
        run.config for run in made.runs if (run.config.seed, run.config.method) == (3, "eoh")
    )


def test_runs_inside_of_another_engine_have_no_command(maker: Maker) -> None:
    """Else a reader repeats a run of EoH by a command of ours, which is another search."""
    folder = maker.run("host/one")
    log = folder / "events.jsonl"
    log.write_text(log.read_text().replace('"measure":', '"host": {"name": "EoH 0.2"}, "measure":', 1))
    made = build(read_runs(run_folders([folder]), lambda: None))
    recipe = made.sections[0].recipes[0]
    assert (recipe.command, recipe.host) == ("", "EoH 0.2")
