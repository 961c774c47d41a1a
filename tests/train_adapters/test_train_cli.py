"""The commands of the trainer: what they take, refuse, and print."""

from __future__ import annotations

import io
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from training_cases import CountAdapter, drawn, of_kind, settings, train

from eoh_esopt.cli import main
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.agent_evaluation import played
from train_adapters.cli import adapter_settings
from train_adapters.reports import LineListener, evaluation_line, print_summary, watch


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main.cli, [str(one) for one in arguments])


def refused(*arguments: object) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


@pytest.mark.parametrize("command", ["train", "evaluate-agent"])
def test_the_commands_are_there_with_examples(command: str) -> None:
    """Else a user who installs the package cannot train."""
    assert command in call("--help").output
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output


def test_the_commands_are_found_without_their_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a checkout that was installed before they were there has to be installed again."""
    monkeypatch.setattr(main, "entry_points", lambda group: [])
    assert call("train", "--list-presets").exit_code == 0


def test_other_packages_bring_their_own_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else only this package can add to the command line."""
    other = EntryPoint("other", "train_adapters.cli:train", "eoh_esopt.commands")
    monkeypatch.setattr(main, "entry_points", lambda group: [other])
    assert "sudoku-15" in call("other", "--list-presets").output
    assert call("nothing-such").exit_code == 2


def test_presets_are_listed_with_what_they_are_for() -> None:
    """Else nobody knows which of them to take."""
    lines = call("train", "--list-presets").output.splitlines()
    assert any(line.startswith("sudoku-15") and "15 blank cells" in line for line in lines)
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_options_of_the_adapter_are_read_as_what_they_are() -> None:
    """Else --masks 15 is a text."""
    found = adapter_settings(["--masks", "15", "--rules=strict", "--dry-run", "--scale", "-0.5", "--data", "rows"])
    assert found == {
        "masks": 15,
        "rules": "strict",
        "dry_run": True,
        "scale": -0.5,
        "data": str(Path("rows").resolve()),
    }
    with pytest.raises(UserError, match="Unexpected argument 'sudoku'"):
        adapter_settings(["sudoku"])


REFUSED: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "ADAPTER is missing"),
    "no folder": (["sudoku", "--model", "m"], "--out is missing"),
    "no model": (["sudoku", "--out", "x"], "No model is named"),
    "unknown preset": (["sudoku", "--preset", "sudoku-16", "--out", "x"], "Did you mean 'sudoku-1"),
    "unknown adapter": (["sodoku", "--model", "m", "--out", "x"], "Did you mean 'sudoku'"),
    "adapter's setting": (["sudoku", "--mask", "5", "--model", "m", "--out", "x"], "Did you mean 'masks'"),
    "adapter's setting first": (["--masks", "5", "sudoku", "--out", "x"], "--masks comes before ADAPTER"),
    "resume and seed": (["--resume", "x", "--seed", "3"], "--seed cannot be given with --resume"),
    "resume and G": (["--resume", "x", "--directions", "3"], "--directions cannot be given with --resume"),
    "resume and masks": (["--resume", "x", "--masks", "3"], "--masks cannot be given with --resume"),
    "resume and adapter": (["sudoku", "--resume", "x"], "ADAPTER cannot be given with --resume"),
    "no run": (["--resume", "nowhere"], "nowhere holds no run"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_ends_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """Else a user reads a traceback, or a folder is begun that leads to nothing."""
    monkeypatch.chdir(tmp_path)
    text = refused("train", *arguments)
    assert message in text
    assert "\n" not in text
    assert list(tmp_path.iterdir()) == []


def test_a_split_without_tasks_is_refused() -> None:
    """Else the mean of nothing is printed."""
    message = refused("evaluate-agent", "sudoku", "--masks", 5, "--train", 2, "--val", 1, "--test", 0, "--model", "m")
    assert "no tasks in split 'test'" in message
    assert "train 2" in message


def test_the_screen_says_what_the_log_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else a user without a terminal sees nothing of the training."""
    with watch() as listener:
        summary = train(tmp_path / "run", model=ScriptedModel(drawn), listener=listener)
    generations = of_kind(tmp_path / "run", "generation")
    print_summary(Console(width=160), summary, generations)
    printed = capsys.readouterr().out
    assert isinstance(listener, LineListener)
    for report in generations:
        assert f"reward {report['reward']:.3f} +- {report['spread']:.3f}" in printed
    for text in (
        "val before training",
        "val, after",
        "test after generation 3",
        "updates",
        "peak memory",
        "generations without",
    ):
        assert text in printed
    assert summary["weights_after"][:12] in printed


def test_why_nothing_is_learnt_is_on_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else a user waits for a training that stands still."""
    with watch() as listener:
        train(tmp_path / "run", settings(), ScriptedModel(lambda request, number: ""), listener=listener)
    assert "no update: all 4 directions had the same reward" in capsys.readouterr().out


def test_repeats_of_an_evaluation_have_their_own_seeds() -> None:
    """Else three repeats are one, and its interval is a lie."""
    adapter, model = CountAdapter(), ScriptedModel(drawn)
    found = played(model, adapter, adapter.tasks("train"), "train", 3, seed=7)
    assert len(found.repeats) == 3
    assert len({one.seed for one in model.requests}) == len(model.requests)
    assert found.low is not None
    assert found.mean is not None
    assert found.low <= found.mean <= found.high  # type: ignore[operator]
    assert f"{found.mean:.3f}" in evaluation_line(found)


def test_equal_rewards_have_no_interval() -> None:
    """Else four failures out of four are printed as certainty."""
    adapter = CountAdapter()
    found = played(ScriptedModel(lambda request, number: "9"), adapter, adapter.tasks("val")[:1] * 2, "val", 2, seed=7)
    assert (found.mean, found.low, found.high) == (pytest.approx(-0.6), None, None)
    assert "interval" not in evaluation_line(found)


def test_the_table_fits_a_terminal(tmp_path: Path) -> None:
    """Else every number of it is cut to two digits."""
    summary = train(tmp_path / "run")
    console = Console(width=80, record=True, file=io.StringIO())
    print_summary(console, summary, of_kind(tmp_path / "run", "generation"))
    assert "…" not in console.export_text()


def test_an_evaluation_that_fails_says_so() -> None:
    """Else an outage is read as a score."""

    def fails(task: Any, moment: str, count: int) -> None:
        raise ConnectionError("down")

    adapter = CountAdapter(fails=fails)
    found = played(ScriptedModel(drawn), adapter, adapter.tasks("val"), "val", 2, seed=7)
    assert (found.mean, found.low, found.repeats, found.horizon) == (None, None, (None, None), None)
    assert found.endings == {"infra_failed": 4}
    assert "mean reward -" in evaluation_line(found)


@pytest.mark.parametrize("command", ["train", "evaluate-agent"])
@pytest.mark.parametrize("thinking", [False, True])
def test_how_replies_are_drawn_reaches_the_model(
    command: str, thinking: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else --presence-penalty and --thinking are taken and change nothing."""
    asked: list[tuple[float, ChatSettings]] = []

    def load_model(config: RunConfig, notify: Any, held: ChatSettings) -> Any:
        asked.append((config.sampling.presence_penalty, held))
        raise UserError("no model")

    for module in ("eoh_esopt.engine.run", "train_adapters.agent_evaluation"):
        monkeypatch.setattr(f"{module}.load_model", load_model)
    small = ["sudoku", "--masks", 5, "--train", 32, "--val", 1, "--test", 1, "--model", "m"]
    options = ["--presence-penalty", 0.5, *["--thinking"] * thinking]
    out = ["--out", tmp_path / "run"] if command == "train" else []
    assert refused(command, *small, *options, *out) == "no model"
    assert asked == [(0.5, ChatSettings(thinking=thinking))]


def test_an_evaluation_takes_the_training_s_settings(tmp_path: Path) -> None:
    """What a training said of itself would not come out again, or a damaged file would change figures in silence."""
    from train_adapters.agent_evaluation import training_of
    from train_adapters.config import TrainConfig

    config = tmp_path / "config.json"
    config.write_text(TrainConfig("sudoku", "m", seed=7).to_json())
    assert training_of(tmp_path).seed == training_of(tmp_path / "history.json").seed == 7
    config.write_text(config.read_text().replace('"seed"', '"sead"'))
    with pytest.raises(UserError, match="unknown setting 'sead'"):
        training_of(tmp_path)
    config.write_text('{"problem": "tsp_construct"}')
    assert training_of(tmp_path) == training_of(None) == TrainConfig("", "")
