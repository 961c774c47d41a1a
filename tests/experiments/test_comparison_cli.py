"""`eoh-esopt compare` and `scripts/significance.py` on runs of the real search, written by a scripted model."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from run_folders import write_arm, write_run

from eoh_esopt.cli.main import main
from eoh_esopt.engine import run as engine
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.listener import Listener
from eoh_esopt.experiments.held_out import FILE
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., tuple[int, str, str]]
HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):"
HELD_OUT = ("--held-out", "test", "--size", "20,12", "--instances", "3", "--workers", "2")


def write(request: Request, number: int) -> str:
    """A heuristic whose weight of the way back depends on all it may depend on."""
    near, back = "distance_matrix[current_node][unvisited_nodes]", "distance_matrix[destination_node][unvisited_nodes]"
    body = f"return unvisited_nodes[np.argmin({near} - {number % 97 / 100} * {back})]"
    return f"{{Weigh the way back.}}\n```python\nimport numpy as np\n{HEAD}\n    {body}\n```\n"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `eoh-esopt` with these arguments: exit code and both outputs."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eoh-esopt", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of two arms and three seeds."""
    root = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "load_model", lambda *arguments: ScriptedModel(write))
        for method in ("eoh", "esopt-eoh"):
            for seed in (1, 2, 3):
                config = RunConfig(
                    "tsp_construct", "scripted", method=method, budget=8, seed=seed, population=2, directions=2
                )
                out = root / "tsp_construct" / method / f"seed-{seed}"
                engine.start(config, out, workers=2, listener=Listener(), notify=lambda _: None)
    return root


def read_json(call: Call, *arguments: object) -> dict[str, Any]:
    code, out, err = call("compare", *arguments, "-f", "json", "--resamples", 200)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_folder_of_real_runs_is_compared(call: Call, sweep: Path) -> None:
    """Else what the engine writes is not what a comparison reads."""
    found = read_json(call, sweep)
    [table] = found["tables"]
    [cell] = table["cells"]
    assert [(arm["name"], len(arm["runs"])) for arm in cell["arms"]] == [("eoh", 3), ("esopt-eoh", 3)]
    for arm in cell["arms"]:
        bests = [
            json.loads((Path(run["folder"]) / "summary.json").read_text())["best"]["objective"] for run in arm["runs"]
        ]
        assert [run["value"] for run in arm["runs"]] == bests
        assert arm["mean"] == pytest.approx(sum(bests) / 3)
        assert arm["spent"]["candidates"] == 8
    [contrast] = cell["contrasts"]
    assert contrast["paired"]
    assert any("3 repetitions cannot show a difference" in note for note in contrast["notes"])


def test_held_out_values_are_those_of_evaluate_and_kept(
    call: Call, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else held-out tables rest on another score than the one that users can check, or cost it again every time."""
    found = read_json(call, sweep, *HELD_OUT)
    assert [table["objective"] for table in found["tables"]] == ["training", "test12", "test20"]
    run = found["tables"][2]["cells"][0]["arms"][1]["runs"][0]
    heuristic = Path(run["folder"]) / "best_heuristic.py"
    evaluate = ("evaluate", heuristic, "--problem", "tsp_construct", "--size", "20", "--instances", "3")
    _, out, _ = call(*evaluate, "--workers", "2", "--format", "json")
    assert run["value"] == json.loads(out)[0]["mean"]
    assert len(json.loads((Path(run["folder"]) / FILE).read_text())) == 2

    def no_sandbox(*_arguments: object, **_settings: object) -> None:
        raise AssertionError("scored again")

    monkeypatch.setattr("eoh_esopt.experiments.held_out.Evaluator", no_sandbox)
    assert read_json(call, sweep, *HELD_OUT) == found


def test_another_heuristic_is_scored_anew(call: Call, tmp_path: Path) -> None:
    """Else a run that was done again shows the score of the heuristic it had before."""
    write_arm(tmp_path, {1: 6.5, 2: 6.4})
    before = read_json(call, tmp_path, *HELD_OUT)["tables"][2]["cells"][0]["arms"][0]["runs"]
    farthest = f"{HEAD}\n    return unvisited_nodes[-1]\n"
    (tmp_path / "seed-1" / "best_heuristic.py").write_text(farthest)
    after = read_json(call, tmp_path, *HELD_OUT)["tables"][2]["cells"][0]["arms"][0]["runs"]
    assert after[0]["value"] > before[0]["value"]
    assert after[1] == before[1]


def test_a_heuristic_that_fails_is_named(call: Call, tmp_path: Path) -> None:
    """Else its run is missing from the held-out table and nobody knows why."""
    write_arm(tmp_path, {1: 6.5})
    write_run(tmp_path / "seed-2", seed=2, best=6.4, code=f"{HEAD}\n    return -1\n")
    cell = read_json(call, tmp_path, *HELD_OUT)["tables"][1]["cells"][0]
    assert cell["arms"][0]["mean"] is None
    assert any("seed-2: its best heuristic fails on 3 of 3 instances of test12" in note for note in cell["notes"])
    (tmp_path / "seed-1" / FILE).write_text("[{}]")
    code, _, err = call("compare", tmp_path, *HELD_OUT)
    assert code == 2
    assert "held_out.json is damaged" in err


def test_the_table_fits_a_terminal_and_says_how_to_read_it(call: Call, sweep: Path) -> None:
    """Else people cannot read what the tests said."""
    code, out, err = call("compare", sweep, "--resamples", 200)
    assert (code, err) == (0, "")
    assert "tsp_construct, training, 8 candidates: tour length, lower is better" in out
    assert "against eoh" in out
    assert "p is one-sided" in out
    assert max(map(len, out.splitlines())) <= 160


def test_files_are_written_in_the_form_of_their_names(call: Call, sweep: Path, tmp_path: Path) -> None:
    """Else the table has to be copied out of a terminal."""
    for name, start in (("a.md", "### tsp_construct"), ("a.csv", "objective,problem"), ("a.json", "{")):
        assert call("compare", sweep, "--resamples", 200, "-o", tmp_path / name) == (0, "", "")
        assert (tmp_path / name).read_text().startswith(start)
    assert call("compare", sweep, "-f", "md", "-o", tmp_path / "a.txt")[0] == 0
    code, _, err = call("compare", sweep, "-o", tmp_path / "b.txt")
    assert code == 2
    assert "choose -f md, csv or json" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone",), "gone is not there"),
        ((), "Missing argument 'RUNS...'"),
        (("SWEEP", "--size", "50"), "--size belongs to --held-out"),
        (("SWEEP", "--held-out", "train"), "train is what the runs were selected by"),
        (("SWEEP", "--held-out", "test", "--size", "big"), "--size takes whole numbers"),
        (("SWEEP", "--baseline", "sample"), "no arm 'sample'"),
    ],
)
def test_bad_input_ends_in_one_sentence(
    call: Call, sweep: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Else a mistake ends in a trace, or in a table of something else."""
    monkeypatch.chdir(tmp_path)
    code, out, err = call("compare", *(str(sweep) if one == "SWEEP" else one for one in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def significance() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("significance", ROOT / "scripts" / "significance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_script_prints_published_beside_computed(
    significance: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the claim that the published p were recomputed cannot be checked by one command."""
    monkeypatch.setenv("COLUMNS", "160")
    significance.main([])
    out = capsys.readouterr().out
    for cells in (("0.0258", "0.0257", "0.0254 to 0.0260"), ("0.0100", "0.0099", "0.0059 to 0.0159")):
        [line] = [line for line in out.splitlines() if all(cell in line for cell in cells)]
        assert "yes" in line
    assert "Repetitions of each arm for an effect" in out


def test_the_script_compares_runs(
    significance: ModuleType, sweep: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the script and the command say different things."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    with pytest.raises(SystemExit) as ended:
        significance.main([str(sweep), "-f", "json", "--resamples", "200"])
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out)["baseline"] == "eoh"
