"""Bad input of every sort ends in one sentence and exit code 2, and changes nothing on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import CONFIG, EVENTS, HISTORY, claim
from eoh_esopt.engine.history import History
from operators.noise import NOISE_VERSION

Call = Callable[..., tuple[int, str, str]]
NAME = "SmolLM2-135M-Instruct"
TSP = ("run", "tsp_construct", "--model", NAME, "--out", "OUT")


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything under a folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def refused(call: Call, root: Path, *arguments: object) -> str:
    """The one sentence of a command that must fail without a trace."""
    before = tree(root)
    code, out, err = call(*arguments)
    assert code == 2, (out, err)
    assert err.startswith("Error: "), err
    assert err.count("\n") == 1, f"not one line: {err}"
    assert tree(root) == before
    return err


def put_run(folder: Path, model: str = NAME, **settings: object) -> RunConfig:
    """A folder as a run leaves it that was killed at once."""
    config = RunConfig("tsp_construct", model, method="eoh", **settings).resolved(1)  # type: ignore[arg-type]
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / CONFIG).write_text(config.to_json())
    start = {"event": "start", "config": asdict(config), "base_checksum": "0" * 64}
    (folder / EVENTS).write_text(json.dumps(start) + "\n")
    return config


SETTINGS = {
    "unknown problem": (("run", "knapsack", "--model", NAME, "--out", "OUT"), "'knapsack'.*tsp_construct"),
    "unknown model": (("run", "tsp_construct", "--model", "SmolLM3000", "--out", "OUT"), "SmolLM3000"),
    "empty model": (("run", "tsp_construct", "--model", "", "--out", "OUT"), "model"),
    "no model folder": (("run", "tsp_construct", "--model", "./none", "--out", "OUT"), "does not exist"),
    "unknown option": ((*TSP, "--learning-rate", "1"), "--learning-rate.*--help"),
    "unknown command": (("search",), "search.*--help"),
    "no number": ((*TSP, "--budget", "many"), "'many'"),
    "option without value": (("run", "--resume"), "--resume"),
    "two problems": (("run", "tsp_construct", "kp", "--model", NAME, "--out", "OUT"), "kp"),
    "no problem": (("run", "--model", NAME, "--out", "OUT"), "PROBLEM is missing"),
    "no model": (("run", "tsp_construct", "--out", "OUT"), "--model is missing"),
    "no folder": (("run", "tsp_construct", "--model", NAME), "--out is missing"),
    "nothing": (("run",), "is missing"),
    "unknown method": ((*TSP, "--method", "funsearch"), "'funsearch'.*esopt-eoh"),
    "unknown reward": ((*TSP, "--reward", "best"), "'best'.*graded"),
    "unknown scope": ((*TSP, "--scope", "heads"), "'heads'.*norms"),
    "unknown restore": ((*TSP, "--restore", "copy"), "'copy'.*subtract"),
    "unknown isolation": ((*TSP, "--isolation", "some"), "'some'.*required"),
    "budget below a batch": ((*TSP, "--budget", "9"), "budget of 9"),
    "negative budget": ((*TSP, "--budget", "-9"), "budget of -9"),
    "one direction": ((*TSP, "--directions", "1"), "at least 2 directions"),
    "negative sigma": ((*TSP, "--sigma", "-0.1"), "sigma.*-0.1"),
    "sigma NaN": ((*TSP, "--sigma", "nan"), "sigma.*nan"),
    "final sigma infinite": ((*TSP, "--sigma-final", "inf"), "sigma_final.*inf"),
    "negative alpha": ((*TSP, "--alpha", "-1"), "alpha.*-1"),
    "alpha NaN": ((*TSP, "--alpha", "nan"), "alpha.*nan"),
    "temperature NaN": ((*TSP, "--temperature", "nan"), "temperature.*nan"),
    "top-p": ((*TSP, "--top-p", "2"), "top-p.*2"),
    "no tokens": ((*TSP, "--max-new-tokens", "0"), "max-new-tokens.*0"),
    "no time": ((*TSP, "--timeout", "0"), "timeout.*0"),
    "no workers": ((*TSP, "--workers", "0"), "workers.*0"),
    "fewer than no workers": ((*TSP, "--workers", "-2"), "workers.*-2"),
    "no workers to resume": (("run", "--resume", "OUT", "--workers", "0"), "workers.*0"),
    "unknown model to get": (("model", "get", "SmolLM3000"), "SmolLM3000"),
    "unknown model to show": (("model", "info", "SmolLM3000"), "SmolLM3000"),
    "replay of nothing": (("replay", "OUT"), "no history at"),
}


@pytest.mark.parametrize(("arguments", "message"), SETTINGS.values(), ids=SETTINGS)
def test_bad_arguments(call: Call, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """Else a typing error ends in a traceback, or begins a run that nobody wanted."""
    out = tmp_path / "runs" / "a"
    said = refused(call, tmp_path, *(str(out) if one == "OUT" else one for one in arguments))
    assert re.search(message, said), said


@pytest.mark.parametrize("out", ["run", "file", "file/run", "x" * 300])
def test_a_folder_that_cannot_be_used(call: Call, tmp_path: Path, out: str) -> None:
    """Else a run is overwritten, or a model is loaded for minutes before --out turns out to be useless."""
    put_run(tmp_path / "run")
    (tmp_path / "file").touch()
    said = refused(call, tmp_path, *TSP[:-1], tmp_path / out)
    assert "Choose another" in said
    assert "--resume" in said or out != "run"


def test_a_folder_in_use(call: Call, tmp_path: Path) -> None:
    """Else two runs write into one log."""
    put_run(tmp_path / "run")
    with claim(tmp_path / "run", new=False):
        assert "is in use by another run" in refused(call, tmp_path, "run", "--resume", tmp_path / "run")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (("--budget", "5"), "--budget"),
        (("--samples-per-direction", "5"), "--samples-per-direction"),
        (("--prefill", "none"), "--prefill"),
        (("--shuffle-rewards",), "--shuffle-rewards"),
        (("--out", "elsewhere"), "--out"),
        (("tsp_construct",), "PROBLEM"),
    ],
)
def test_resuming_with_other_settings(call: Call, tmp_path: Path, option: tuple[str, ...], named: str) -> None:
    """Else the user believes that the rest of the run has the new settings."""
    put_run(tmp_path / "run")
    said = refused(call, tmp_path, "run", "--resume", tmp_path / "run", *option)
    assert said.startswith(f"Error: {named} cannot be given with --resume")


@pytest.mark.parametrize("change", [("budget", 999), ("seed", 7), ("sampling", {"temperature": 0.1})])
def test_resuming_with_an_edited_file(call: Call, tmp_path: Path, change: tuple[str, object]) -> None:
    """Else half of a run is made with one seed or temperature, and half with another."""
    put_run(tmp_path / "run")
    path = tmp_path / "run" / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **dict([change])}))
    said = refused(call, tmp_path, "run", "--resume", tmp_path / "run")
    assert "but the run began with" in said


def test_resuming_what_is_no_run(call: Call, tmp_path: Path) -> None:
    """Else a typing error begins an empty run, or ends in a traceback."""
    (tmp_path / "empty").mkdir()
    put_run(tmp_path / "torn")
    (tmp_path / "torn" / EVENTS).write_text("{}\n{}\n")
    put_run(tmp_path / "headless")
    (tmp_path / "headless" / EVENTS).write_text('{"event": "batch"}\n')
    put_run(tmp_path / "lost")
    (tmp_path / "lost" / CONFIG).unlink()
    put_run(tmp_path / "changed")
    (tmp_path / "changed" / CONFIG).write_text("{")
    messages = {"none": "holds no run", "empty": "holds no run", "torn": "line 1", "headless": "does not begin"}
    messages |= {"lost": "Cannot read", "changed": "is damaged"}
    for name, message in messages.items():
        assert message in refused(call, tmp_path, "run", "--resume", tmp_path / name)


def put_history(folder: Path, model: str = NAME, **fields: object) -> None:
    folder.mkdir()
    history = json.loads(History(model, "0" * 64, "norms", "exact", "float32").to_json())
    (folder / HISTORY).write_text(json.dumps({**history, **fields}))


def test_replaying_what_cannot_be_replayed(call: Call, tmp_path: Path) -> None:
    """Else a replay destroys a folder, or gives weights that are not the run's."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").touch()
    put_history(tmp_path / "run")
    put_history(tmp_path / "later", noise_version=NOISE_VERSION + 1)
    put_history(tmp_path / "other", scope="heads")
    put_history(tmp_path / "none", model="./none")
    for save in ("full", "file"):
        assert "is not empty" in refused(call, tmp_path, "replay", tmp_path / "run", "--save", tmp_path / save)
    assert "cannot be written to" in refused(
        call, tmp_path, "replay", tmp_path / "run", "--save", tmp_path / "file" / "x"
    )
    assert "noise version" in refused(call, tmp_path, "replay", tmp_path / "later")
    assert "'heads'" in refused(call, tmp_path, "replay", tmp_path / "other")
    assert "does not exist" in refused(call, tmp_path, "replay", tmp_path / "none")


def copy_without(model: Path, folder: Path, *left_out: str) -> Path:
    """The model's folder again, without some files and with its weights as a link."""
    folder.mkdir()
    for path in model.iterdir():
        if path.name not in left_out:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.model
def test_a_model_without_chat_template(call: Call, tmp_path: Path, small_model: Path) -> None:
    """Else a base model is run for hours with prompts that it does not understand."""
    base = copy_without(small_model, tmp_path / "base", "chat_template.jinja", "tokenizer_config.json")
    settings = json.loads((small_model / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (base / "tokenizer_config.json").write_text(json.dumps(settings))
    code, _, err = call("run", "tsp_construct", "--model", base, "--out", tmp_path / "run")
    assert code == 2
    assert err.splitlines()[-1].startswith("Error: The tokenizer in ")
    assert "instruction-tuned" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.model
def test_a_model_with_a_file_missing(call: Call, tmp_path: Path, small_model: Path) -> None:
    """Else a half-copied model ends in a traceback of a library."""
    half = copy_without(small_model, tmp_path / "half", "model.safetensors")
    assert "weights" in refused(call, tmp_path, "run", "tsp_construct", "--model", half, "--out", tmp_path / "run")


@pytest.mark.model
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-new-tokens", "1000000"), "max-new-tokens is 1000000, but the model's context is"),
        (("--sigma", "0"), "Self-test failed: .* Choose a larger sigma"),
        (("--sigma", "1e30"), "Self-test failed: .* not finite. Choose a smaller sigma"),
        (("--dtype", "int3"), "Unknown dtype 'int3'"),
    ],
)
def test_settings_that_the_model_cannot_take(
    call: Call, tmp_path: Path, small_model: Path, options: tuple[str, ...], message: str
) -> None:
    """Else replies are cut off, or a run learns nothing, and nobody is told."""
    arguments = ("run", "tsp_construct", "--model", small_model, "--scope", "norms", "--out", tmp_path / "run")
    code, _, err = call(*arguments, *options)
    assert code == 2
    assert re.match(f"Error: {message}", err.splitlines()[-1]), err
    assert not (tmp_path / "run").exists()


@pytest.mark.model
def test_a_model_that_is_not_the_runs_own(call: Call, tmp_path: Path, small_model: Path) -> None:
    """Else a run goes on, or is replayed, on other weights than it began with."""
    put_run(tmp_path / "run", str(small_model))
    put_history(tmp_path / "history", str(small_model))
    before = tree(tmp_path)
    for arguments in (("run", "--resume", tmp_path / "run"), ("replay", tmp_path / "history")):
        code, _, err = call(*arguments)
        assert code == 2
        assert "began with weights 000000000000" in err or "begins with weights 000000000000" in err
    assert tree(tmp_path) == before
