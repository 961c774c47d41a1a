"""The settings of a comparison: presets, equal budgets, and what is refused before anything is run."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from grpo_cases import baseline, talk, training

from eoh_esopt.cli import main
from operators.errors import UserError
from train_adapters.grpo import comparison
from train_adapters.grpo.config import GrpoConfig, es_rollouts, matched
from train_adapters.grpo.recorded import RecordedArm, newest_checkpoint
from train_adapters.presets import config_of, grpo_of, load_preset


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main.cli, ["compare-training", *map(str, arguments)])


def refused(*arguments: object) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("name", "rollouts", "steps"), [("matched-budget", 102_400, 400), ("matched-budget-small", 96, 4)]
)
def test_the_shipped_presets_spend_the_same_rollouts(name: str, rollouts: int, steps: int) -> None:
    """Else the comparison that the preset is for is refused, or not what it says."""
    preset = load_preset(name)
    config = config_of("sudoku", [preset])
    grpo = matched(config, grpo_of([preset]), force=False)
    assert es_rollouts(config) == grpo.step_rollouts * (grpo.steps or 0) == rollouts
    assert grpo.steps == steps


def test_the_published_preset_has_the_published_settings() -> None:
    """Else the baseline is held back, and the comparison says so of nobody."""
    grpo = grpo_of([load_preset("matched-budget")])
    assert (grpo.prompts, grpo.group, grpo.learning_rate, grpo.beta, grpo.clip) == (32, 8, 1e-6, 1e-3, 0.2)


def test_different_budgets_are_refused_unless_forced(tmp_path: Path) -> None:
    """Else one arm wins by what it was given."""
    config = training(talk(tmp_path), tmp_path)
    assert matched(config, baseline(), force=False).steps == 2
    with pytest.raises(
        UserError, match=r"same budget: 12 rollouts .*2 generations x 3 directions x 2.*, 18 of GRPO .3 steps"
    ):
        matched(config, baseline(steps=3), force=False)
    assert matched(config, baseline(steps=3), force=True).steps == 3
    with pytest.raises(UserError, match="12 rollouts"):
        matched(config, baseline(group=7), force=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": 1}, "group must be at least 2, not 1"),
        ({"prompts": 0}, "prompts must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number above 0"),
        ({"beta": -1.0}, "beta must be a finite number of at least 0"),
        ({"clip": 1.0}, r"clip must lie in \(0, 1\)"),
        ({"minibatches": 4}, "4 minibatches do not divide the 6 rollouts"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    """Else trl fails on them after the other arm has run, or learns nothing."""
    with pytest.raises(UserError, match=message):
        baseline(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backend": "vllm"}, "GRPO needs gradients"),
        ({"temperature": 0.0}, "At temperature 0"),
        ({"skill": "x.md"}, "trains weights alone"),
    ],
)
def test_trainings_that_grpo_cannot_follow_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Else the arms differ in more than how they learn."""
    with pytest.raises(UserError, match=message):
        matched(training(talk(tmp_path), tmp_path, **changes), baseline(), force=False)


def test_unknown_keys_of_a_preset_are_refused(tmp_path: Path) -> None:
    """Else a misspelt setting is taken for its default."""
    file = tmp_path / "mine.toml"
    file.write_text("[grpo]\ngroups = 4\n")
    with pytest.raises(UserError, match=r"\[grpo\]: unknown key 'groups'. Did you mean 'group'"):
        load_preset(str(file))
    file.write_text("[grpo]\ntemperature = 0.5\n")
    with pytest.raises(UserError, match="unknown key 'temperature'"):
        load_preset(str(file))


def test_missing_trl_is_said_before_anything_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else the first arm is trained for hours, and the second cannot be."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "trl" else find(name, *rest))
    message = refused(talk(tmp_path), "--preset", "matched-budget-small", "--out", tmp_path / "out")
    assert message == "GRPO needs the package trl, which is not installed. Run: pip install 'eoh-esopt[grpo]'"
    assert not (tmp_path / "out").exists()


def test_a_trl_that_cannot_be_imported_is_said_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the first arm is trained for hours, and the second ends in a traceback."""
    monkeypatch.delitem(sys.modules, "train_adapters.grpo.trl_trainer", raising=False)
    other = ModuleType("trl")  # a release without what is imported from it
    other.__spec__ = ModuleSpec("trl", None)
    monkeypatch.setitem(sys.modules, "trl", other)
    message = refused("sudoku", "--preset", "matched-budget-small", "--out", tmp_path / "out")
    assert message.startswith("The package trl that is installed cannot be used: ")
    assert message.endswith("Run: pip install 'eoh-esopt[grpo]'")
    assert not (tmp_path / "out").exists()


def test_what_does_not_go_together_on_the_command_line_is_refused(tmp_path: Path) -> None:
    """Else the user learns of it from a traceback, or not at all."""
    assert refused().startswith("ADAPTER is missing")
    assert refused("sudoku").startswith("--out is missing")
    assert refused("--masks", "sudoku", "--out", tmp_path / "x").startswith("--masks comes before ADAPTER")
    assert refused("sudoku", "--out", tmp_path / "x").startswith("No model is named")
    assert refused("sudoku", "--resume", tmp_path).startswith("ADAPTER cannot be given with --resume")
    assert refused("--resume", tmp_path, "--force").startswith("--force cannot be given with --resume")
    assert refused("--resume", tmp_path, "--seed", 4).startswith("--seed cannot be given with --resume")
    assert "holds no comparison" in refused("--resume", tmp_path)
    small = ("--preset", "matched-budget-small", "--out", tmp_path / "x")
    assert refused(talk(tmp_path), *small).startswith("A batch of 6 is more than the 3 training tasks")
    assert "would not have the same budget" in refused("sudoku", *small, "--steps", 9)
    assert not (tmp_path / "x").exists()


def test_a_second_comparison_does_not_go_into_the_folder_of_the_first(tmp_path: Path) -> None:
    """Else it is half the one and half the other."""
    out = tmp_path / "out"
    out.mkdir()
    (out / comparison.SETTINGS).write_text("{}")
    message = refused("sudoku", "--preset", "matched-budget-small", "--out", out)
    assert message.startswith(f"{out} holds a comparison already")
    assert f"{comparison.SETTINGS} is damaged" in refused("--resume", out)


def test_the_command_has_examples_and_an_entry_point() -> None:
    """Else a user who installs the package cannot compare."""
    result = call("--help")
    assert result.exit_code == 0
    assert "--preset matched-budget" in result.output
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'compare-training = "train_adapters.grpo.cli:compare_training"' in pyproject


def test_the_newest_whole_checkpoint_is_gone_on_from(tmp_path: Path) -> None:
    """Else an arm that was killed while a checkpoint was written cannot go on."""
    assert newest_checkpoint(tmp_path / "nothing") is None
    for updates, whole in ((4, True), (12, True), (16, False)):
        (tmp_path / f"checkpoint-{updates}").mkdir()
        if whole:
            (tmp_path / f"checkpoint-{updates}" / "trainer_state.json").write_text("{}")
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert (found.folder.name, found.updates) == ("checkpoint-12", 12)


def test_steps_that_were_done_again_count_once() -> None:
    """Else a resumed baseline is charged for rollouts that its weights do not rest on."""
    events = [
        {"event": "step", "step": 0, "episodes": 6},
        {"event": "step", "step": 1, "episodes": 6},
        {"event": "go_on", "step": 1},
        {"event": "step", "step": 1, "episodes": 5},
    ]
    assert [one["episodes"] for one in RecordedArm(events).steps] == [6, 5]
    assert RecordedArm(events[:3]).steps == events[:1]


def test_wall_time_of_generations_leaves_evaluations_out() -> None:
    """Else an arm that is evaluated more often looks slower."""
    log = [
        {"event": "evaluation", "seconds": 10.0},
        {"event": "generation", "seconds": 15.0},
        {"event": "update"},
        {"event": "evaluation", "seconds": 30.0},
        {"event": "generation", "seconds": 37.0},
        {"event": "evaluation", "seconds": 90.0},
    ]
    assert comparison.generation_seconds(log) == 12.0


def test_settings_survive_the_way_through_their_file() -> None:
    """Else a resumed comparison is another one."""
    grpo = GrpoConfig(steps=3, prompts=2, group=2, learning_rate=1e-5)
    assert GrpoConfig(**json.loads(json.dumps(vars(grpo)))) == grpo
