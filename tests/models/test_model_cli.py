"""The `model` commands: what they print, where, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from eoh_esopt.cli.model import model
from eoh_esopt.models import cache, hub
from eoh_esopt.models.catalogue import known_names
from operators.errors import UserError

NAME = "SmolLM2-135M-Instruct"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without models, and a hub cache without models."""
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "cached_snapshot", lambda _: None)
    return tmp_path


def put_model(root: Path) -> Path:
    folder = root / "models" / NAME
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    cache.write_record(folder, NAME, "Apache-2.0", 1, (cache.SourceFile("a.gguf", "0" * 64),))
    return folder


def test_the_list_names_every_model_in_both_formats(empty: Path) -> None:
    """Else a model can be had that nobody hears of, or a program has to parse a table."""
    table = CliRunner().invoke(model, ["list"], env={"COLUMNS": "160"})
    assert all(name in table.stdout for name in known_names())
    listed = json.loads(CliRunner().invoke(model, ["list", "--format", "json"]).stdout)
    assert [one["name"] for one in listed] == list(known_names())
    assert all(one["folder"] is None for one in listed)


def test_getting_a_model_prints_nothing_but_its_folder_on_standard_output(empty: Path) -> None:
    """Else `$(eoh-esopt model get NAME)` in a script holds progress text."""
    folder = put_model(empty)
    result = CliRunner().invoke(model, ["get", NAME.lower()])
    assert result.exit_code == 0
    assert result.stdout == f"{folder}\n"


def test_info_without_a_copy_says_how_to_get_it(empty: Path) -> None:
    """Else the user sees that it is missing and has to look up the command."""
    result = CliRunner().invoke(model, ["info", NAME])
    assert result.exit_code == 0
    assert f"eoh-esopt model get {NAME}" in result.stdout


def test_verification_of_a_changed_file_fails_with_exit_code_1(empty: Path) -> None:
    """Else a script that guards a run with `info --verify` goes on with corrupted weights."""
    folder = put_model(empty)
    sound = CliRunner().invoke(model, ["info", NAME, "--verify", "--format", "json"])
    assert (sound.exit_code, json.loads(sound.stdout)["verified"]) == (0, True)
    (folder / "model.safetensors").write_bytes(b"changed")
    changed = CliRunner().invoke(model, ["info", NAME, "--verify"])
    assert changed.exit_code == 1
    assert "model.safetensors has sha256" in changed.stdout


def test_info_on_an_unknown_name_is_a_user_error(empty: Path) -> None:
    """Else a typing error ends in a traceback."""
    result = CliRunner().invoke(model, ["info", "smollm"])
    assert isinstance(result.exception, UserError)


@pytest.mark.parametrize("command", [[], ["list"], ["get"], ["info"]])
def test_every_help_text_has_examples(command: list[str]) -> None:
    """Else the user has to guess how the arguments go together."""
    assert re.search(r"Examples:\n +eoh-esopt model", CliRunner().invoke(model, [*command, "--help"]).stdout)
