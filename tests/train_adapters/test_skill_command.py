"""Skills on the command line: distilled from a run, shown in a training, and refused where they have changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from skill_cases import co_evolving, scripted, shows_skill
from training_cases import CountAdapter, OneDirection, drawn, of_kind, settings, train

from eoh_esopt.cli.main import cli
from eoh_esopt.engine.events import CONFIG, EVENTS, write_atomically
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters import run as runs
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.skills.command import parse_generations
from train_adapters.skills.versions import FOLDER

Invoke = Callable[..., Result]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """Takes the place of every model."""
    made = OneDirection(scripted())
    monkeypatch.setattr("eoh_esopt.engine.backend.load_model", lambda *arguments: made)
    monkeypatch.setattr("eoh_esopt.engine.run.load_model", lambda *arguments: made)
    return made


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' adapter, by a name of its own."""
    monkeypatch.setattr("train_adapters.tasks.make_adapter", lambda name, given: CountAdapter())


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments], catch_exceptions=True)


def trained(folder: Path) -> Path:
    config = settings(trajectories=True)
    train(folder, config)
    write_atomically(folder / CONFIG, config.to_json())
    return folder


def test_a_skill_is_distilled_from_a_run(tmp_path: Path, model: ScriptedModel) -> None:
    """Else skills are for those only who train with them."""
    out = tmp_path / "skill"
    done = invoke("skill", "distil", trained(tmp_path / "run"), "-o", out, "--generations", "2-3", "--lessons", 4)
    assert done.exit_code == 0, done.output
    assert "4 trajectories read, 4 lessons" in done.output
    assert (out / "skill_001.md").read_text().startswith("## Lessons\n\n- ")
    [begun, new] = json.loads((out / "manifest.json").read_text())["versions"]
    assert (begun["parent"], new["parent"]) == (None, "skill_000.md")
    rows = json.loads((out / "selection.json").read_text())["rows"]
    assert {row["generation"] for row in rows} <= {1, 2}
    assert all((out / row["file"]).is_file() for row in rows)
    again = invoke("skill", "distil", tmp_path / "run", "-o", out)
    assert isinstance(again.exception, UserError)
    assert "is there already" in str(again.exception)


def test_no_skill_is_told_and_has_an_exit_code(tmp_path: Path, model: ScriptedModel) -> None:
    """Else a script goes on with a skill that there is not."""
    model._write = scripted(lessons="No.")
    done = invoke("skill", "distil", trained(tmp_path / "run"), "-o", tmp_path / "skill")
    assert done.exit_code == 1
    assert "No answer (unreadable) to traj000001: No." in done.output
    assert "No new version: failed" in done.output


@pytest.mark.parametrize(("text", "expected"), [("5", [4]), ("3-5", [2, 3, 4]), (None, None)])
def test_generations_count_from_one(text: str | None, expected: list[int] | None) -> None:
    """Else a user learns from other generations than the table of the training names."""
    assert parse_generations(text) == expected


@pytest.mark.parametrize("text", ["0", "5-3", "a", "-3", "3-", ""])
def test_other_generations_are_refused(text: str) -> None:
    """Else a typing error learns from all of them."""
    if text == "3-":
        assert parse_generations(text) == [2]
    else:
        with pytest.raises(UserError, match="--generations takes"):
            parse_generations(text)


def begin(folder: Path, skill: Path, **changes: Any) -> dict[str, Any]:
    config = settings(skill=str(skill), **changes)
    return runs.start(config, folder, listener=TrainListener(), notify=lambda text: None)


def go_on(folder: Path) -> dict[str, Any]:
    return runs.resume(folder, listener=TrainListener(), notify=lambda text: None)


@pytest.mark.usefixtures("counted")
def test_a_training_begins_with_a_skill(tmp_path: Path, model: ScriptedModel) -> None:
    """Else --skill is ignored without a word, or nobody knows later which text it was."""
    skill = tmp_path / "mine.md"
    skill.write_text("# Mine\n\n- Say one digit.\n")
    summary = begin(tmp_path / "run", skill)
    played = [request for request in model.requests if request.direction is not None]
    assert all(shows_skill(request) for request in played)
    [first] = of_kind(tmp_path / "run", "start")
    config = json.loads((tmp_path / "run" / CONFIG).read_text())
    assert first["config"]["skill_sha256"] == config["skill_sha256"] == summary["skill"]["sha256"]
    assert (tmp_path / "run" / FOLDER / "skill_000.md").read_text() == skill.read_text()


def cut(folder: Path) -> None:
    """As if the training had been killed before its end."""
    lines = (folder / EVENTS).read_text().splitlines(keepends=True)
    (folder / EVENTS).write_text("".join(lines[: len(lines) // 2]))


@pytest.mark.usefixtures("counted")
def test_a_changed_skill_is_named_and_refused(tmp_path: Path, model: ScriptedModel) -> None:
    """Else a training goes on with a text that it did not begin with, or ignores one that was edited."""
    skill = tmp_path / "mine.md"
    skill.write_text("# Mine\n\n- Say one digit.\n")
    whole = begin(tmp_path / "run", skill)
    cut(tmp_path / "run")
    skill.write_text("# Mine\n\n- Say two digits.\n")
    with pytest.raises(UserError, match=r"mine\.md has changed since the training.*hash was"):
        go_on(tmp_path / "run")
    skill.unlink()
    model.updates.clear()
    assert go_on(tmp_path / "run")["weights_after"] == whole["weights_after"], "the folder has a copy"
    cut(tmp_path / "run")
    model.updates.clear()
    (tmp_path / "run" / FOLDER / "skill_000.md").write_text("# Other\n")
    with pytest.raises(UserError, match=r"skill_000\.md has changed"):
        go_on(tmp_path / "run")


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_skill_that_says_nothing_is_refused(tmp_path: Path, model: ScriptedModel, content: str | None) -> None:
    """Else a typing error in its name trains without a skill."""
    skill = tmp_path / "mine.md"
    if content is not None:
        skill.write_text(content)
    with pytest.raises(UserError, match=r"mine\.md"):
        begin(tmp_path / "run", skill)
    assert not (tmp_path / "run").exists()


def test_replies_of_the_skill_may_be_longer_than_those_of_the_agent(tmp_path: Path) -> None:
    """Else an adapter that allows eight tokens has lessons of eight tokens."""
    model = OneDirection(scripted())
    train(tmp_path / "run", co_evolving(skill_tokens=64), model)
    limits = {request.new_tokens for request in model.requests}
    assert limits == {8, 64}


def test_settings_of_older_trainings_still_hold(tmp_path: Path) -> None:
    """Else trainings that were begun before there were skills cannot be resumed."""
    train(tmp_path / "run")
    lines = (tmp_path / "run" / EVENTS).read_text().splitlines()
    first = json.loads(lines[0])
    new = {
        name for name in TrainConfig.__dataclass_fields__ if "skill" in name or name in ("trajectories", "co_evolve")
    }
    first["config"] = {name: value for name, value in first["config"].items() if name not in new}
    (tmp_path / "run" / EVENTS).write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    write_atomically(tmp_path / "run" / CONFIG, settings().to_json())
    assert go_on(tmp_path / "run")["weights_after"]


def test_the_shown_text_is_drawn_as_before_without_a_skill(tmp_path: Path) -> None:
    """Else trainings without a skill end in other weights than before there were any."""
    model = OneDirection(drawn)
    train(tmp_path / "run", model=model)
    assert not any(shows_skill(request) for request in model.requests)
