"""The commands `sweep`, `preset` and `run --preset` as users call them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sweep_cases import playing, states

from eoh_esopt.cli.main import main
from eoh_esopt.engine import run as engine_run
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments import cell_process
from eoh_esopt.experiments.replicas import Replica
from eoh_esopt.experiments.sweep import load_sweep
from eoh_esopt.models.protocol import Sampling

TEXT = """
tasks = ["tsp_construct"]
methods = ["eoh", "esopt-eoh"]
seeds = [1]
workers = 1
[settings]
model = "m"
"""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `eoh-esopt` with these arguments in this process: exit code and both outputs."""
    for name, value in (("HF_HUB_OFFLINE", "1"), ("CI", "true"), ("COLUMNS", "160"), ("TOKENIZERS_PARALLELISM", "0")):
        monkeypatch.setenv(name, value)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eoh-esopt", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small sweep whose cells only play a run."""
    monkeypatch.setattr(cell_process, "command_of", playing(lambda cell: ""))
    (tmp_path / "mine.toml").write_text(TEXT)
    return tmp_path / "mine.toml"


@pytest.mark.parametrize("command", [["sweep"], ["preset"], ["preset", "list"], ["preset", "show"]], ids=" ".join)
def test_help_shows_examples(call: Call, command: list[str]) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, _ = call(*command, "--help")
    assert code == 0
    assert out.partition("Examples:")[2].split("\n")[1].strip().startswith("eoh-esopt " + " ".join(command))


def test_a_sweep_ends_with_what_to_do_next(call: Call, file: Path, tmp_path: Path) -> None:
    """Else the user has the runs and does not know how to read them."""
    code, out, err = call("sweep", file, "--out", tmp_path / "my runs")
    assert (code, err) == (0, "")
    assert states(tmp_path / "my runs") == {f"tsp_construct/{arm}/seed-1": "finished" for arm in ("eoh", "esopt-eoh")}
    assert "2 of 2 cells finished, 0 failed" in out
    assert f"eoh-esopt compare '{tmp_path}/my runs'" in out
    assert f"eoh-esopt report '{tmp_path}/my runs' -o '{tmp_path}/my runs'/report.html" in out


def test_a_failed_cell_is_in_the_exit_code(
    call: Call, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a script goes on to compare what is not complete."""
    monkeypatch.setattr(cell_process, "command_of", playing(lambda cell: "fails" if cell.arm == "eoh" else ""))
    code, out, _ = call("sweep", file, "--out", tmp_path / "out")
    assert code == 1
    assert "  tsp_construct/eoh/seed-1: exit code 1: the weights are gone." in out


def test_a_dry_run_shows_the_cells_and_writes_nothing(call: Call, file: Path, tmp_path: Path) -> None:
    """Else one finds out what a sweep does by waiting for it."""
    before = sorted(tmp_path.iterdir())
    code, out, _ = call("sweep", file, "--out", tmp_path / "out", "--dry-run", "--set", "budget=80")
    assert code == 0
    assert re.search(r"tsp_construct/esopt-eoh/seed-1 +esopt-eoh +80 +4 +waiting", out)
    assert "2 cells, 0 finished; 160 candidates in all" in out
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("smok",), "'smok'. Did you mean 'smoke'?"),
        (("none.toml",), "Cannot read none.toml"),
        (("FILE", "--workers", "0"), "--workers must be at least 1"),
        (("FILE", "--only", "kp_construct"), "--only 'kp_construct' is no cell of the sweep"),
        (("FILE", "--set", "model"), "has no value"),
        (("FILE", "--set", "method=eoh"), "method cannot be set for the whole sweep"),
    ],
)
def test_mistakes_end_in_one_sentence(
    call: Call, file: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Else a typing error ends in a traceback or begins a night's work."""
    given = [str(file) if one == "FILE" else one for one in arguments]
    code, _, err = call("sweep", *given, "--out", tmp_path / "out")
    assert code == 2
    assert err.startswith("Error: ")
    assert message in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_list_has_all_that_is_shipped(call: Call, form: str) -> None:
    """Else a preset is there that nobody finds."""
    code, out, _ = call("preset", "list", "--format", form)
    assert code == 0
    if form == "json":
        assert {one["name"]: one["for"] for one in json.loads(out)}.items() >= {
            "ahd-1000": "run",
            "paper": "sweep",
        }.items()
    for name in ("ahd-1000", "ahd-2000", "ahd-smoke", "noise-only", "cpu", "ablations"):
        assert name in out


def test_show_prints_the_file_itself(call: Call, tmp_path: Path) -> None:
    """Else the settings of a preset cannot be read, or not be made into one's own."""
    code, out, _ = call("preset", "show", "smoke")
    assert code == 0
    (tmp_path / "mine.toml").write_text(out.replace("[1, 2]", "[7]").replace('"ahd-smoke"', '"ahd-cpu"'))
    code, out, _ = call("sweep", tmp_path / "mine.toml", "--dry-run", "--workers", "1")
    assert code == 0, out
    assert "kp_construct/eoh/seed-7" in out
    assert "co_evolve" in call("preset", "show", "co-evolution")[1]
    assert "seeds" in call("preset", "show", "--sweep", "co-evolution")[1]
    code, _, err = call("preset", "show", "ahd-100")
    assert (code, err) == (
        2,
        "Error: Unknown name 'ahd-100'. Did you mean 'ahd-1000'? Or give the path of a .toml file.\n",
    )


class NotBegun(BaseException):
    """In place of a run."""


def config_of(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> RunConfig:
    """The settings that `eoh-esopt run` begins a run with; none is begun."""
    found: list[RunConfig] = []

    def begin(config: RunConfig, out: Path, **_: Any) -> None:
        found.append(config)
        raise NotBegun

    monkeypatch.setattr(engine_run, "start", begin)
    monkeypatch.setattr(sys, "argv", ["eoh-esopt", "run", *map(str, arguments), "--out", "nowhere/out"])
    with pytest.raises(NotBegun):
        main()
    return found[0]


def test_a_run_takes_presets_and_options_over_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else an option that was typed has no effect, or a preset's tables do not follow the method that was asked for."""
    config = config_of(monkeypatch, "kp_construct", "--preset", "ahd-2000", "--method", "esopt-sample")
    assert (config.model, config.budget, config.directions) == ("meta-llama/Llama-3.1-8B-Instruct", 2000, 20)
    arguments = ("--preset", "ahd-2000", "--preset", "noise-only", "--directions", "10", "--temperature", "0.5")
    config = config_of(monkeypatch, "kp_construct", *arguments, "--model", "m")
    assert (config.model, config.directions, config.ablation, config.alpha) == ("m", 10, "noise-only", 5e-4)
    assert config.sampling == Sampling(temperature=0.5)
    (tmp_path / "mine.toml").write_text("model = 'n'\nmethod = 'eoh'\nmax_new_tokens = 80\nbudget = 44")
    config = config_of(monkeypatch, "kp_construct", "--preset", tmp_path / "mine.toml", "--budget", "1000")
    assert (config.model, config.method, config.budget, config.sampling.max_new_tokens) == ("n", "eoh", 1000, 80)


def test_presets_of_a_run_are_checked(call: Call, tmp_path: Path) -> None:
    """Else a typing error in a preset begins a search with other settings."""
    (tmp_path / "mine.toml").write_text("model = 'n'\nbudgt = 44")
    code, _, err = call("run", "tsp_construct", "--preset", tmp_path / "mine.toml", "--out", tmp_path / "out")
    assert code == 2
    assert f"{tmp_path}/mine.toml: unknown key 'budgt'. Did you mean 'budget'?" in err
    code, _, err = call("run", "--resume", tmp_path, "--preset", "ahd-1000")
    assert code == 2
    assert "--preset cannot be given with --resume" in err


EVERYTHING = """
sigma = 0.1
sigma_final = 0.0
sigma_schedule = "linear"
alpha = 0.5
antithetic = true
shuffle_rewards = true
top_p = 0.8
momentum = 0.25
noise = "lowrank"
rank = 2
samples_per_direction = 2
request_timeout = 7
data = "sets"
reward = "paper"
isolation = "none"
timeout = 3
max_batch = 9
prefill = "signature"
shaping = "centred-rank"
"""


def test_a_cell_hands_its_settings_on_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a setting of the sweep is lost on its way to the process that runs the cell."""
    (tmp_path / "mine.toml").write_text(TEXT + EVERYTHING)
    for cell in load_sweep(str(tmp_path / "mine.toml")).cells():
        _, _, _, _, *arguments = cell_process.command_of(cell, tmp_path / "out", Replica("cpu"), 1)
        place = arguments.index("--out")
        assert config_of(monkeypatch, *arguments[:place]) == cell.config
