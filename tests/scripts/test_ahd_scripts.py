"""The scripts for the paper's runs: which commands they give, and that they can be given again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """#!/usr/bin/env bash
echo "$*" >>"$CALLS"
[[ "$*" != *"$FAILS"* ]] || exit 2
while [[ $# -gt 0 ]]; do
  if [[ "$1" == --out || "$1" == --resume ]]; then
    mkdir -p "$2"
    touch "$2/summary.json"
    echo '{"event": "end"}' >>"$2/events.jsonl"
  fi
  shift
done
"""


def script(folder: Path, budget: int, *arguments: str, fails: str = "never", **variables: str) -> tuple[int, str]:
    """Call a script's function with a stub in place of `eoh-esopt`: exit code and what it printed."""
    stub = folder / "venv" / "bin" / "eoh-esopt"
    stub.parent.mkdir(parents=True, exist_ok=True)
    stub.write_text(STUB)
    stub.chmod(0o755)
    program = f"set -euo pipefail; BUDGET_NAME={budget}; source scripts/ahd.sh; setup() {{ :; }}; VENV={folder}/venv"
    ended = subprocess.run(
        ["bash", "-c", f'{program}; run_ahd "$@"', "script", *arguments],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "CALLS": str(folder / "calls"),
            "FAILS": fails,
            "OUT": f"{folder}/out",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stdout + ended.stderr


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


@pytest.mark.parametrize("budget", [1000, 2000])
def test_all_tasks_and_repetitions_are_run_once(tmp_path: Path, budget: int) -> None:
    """Else a task is missing from the paper's table, or a repetition is paid for twice."""
    code, said = script(tmp_path, budget, "esopt-eoh")
    assert code == 0, said
    tasks = ["tsp_construct", "kp_construct", "asp_construct", "aco_tsp", "aco_cvrp", "aco_bpp"]
    assert calls(tmp_path) == [
        f"run {task} --preset ahd-{budget} --method esopt-eoh --seed {seed} "
        f"--out {tmp_path}/out/{task}/esopt-eoh/seed-{seed}"
        for seed in (2024, 2025, 2026)
        for task in tasks
    ]
    code, said = script(tmp_path, budget, "esopt-eoh")
    assert (code, len(calls(tmp_path))) == (0, 18)
    assert "is finished already" in said


def test_everything_can_be_overridden(tmp_path: Path) -> None:
    """Else the rehearsal on a CPU, another model or another server takes an edit of the script."""
    variables = {"TASKS": "kp_construct", "REPS": "1", "SEED": "7", "MODEL": "./my model", "BACKEND": "vllm"}
    code, said = script(tmp_path, 1000, "sample", "--top-k", "9", PRESET="ahd-smoke", **variables)
    assert code == 0, said
    assert calls(tmp_path) == [
        "run kp_construct --preset ahd-smoke --method sample --model ./my model --backend vllm --seed 7 "
        f"--out {tmp_path}/out/kp_construct/sample/seed-7 --top-k 9"
    ]


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """Else a power cut costs what was paid for, or the script stops at a folder that holds a run."""
    folder = tmp_path / "out" / "kp_construct" / "eoh" / "seed-2024"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"event": "start"}\n')
    assert script(tmp_path, 1000, "eoh", TASKS="kp_construct", REPS="1")[0] == 0
    assert calls(tmp_path) == [f"run --resume {folder}"]


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    """Else one task ends the night, or the exit code says that all went well."""
    code, said = script(tmp_path, 1000, "eoh", fails="run aco_tsp", TASKS="aco_tsp kp_construct", REPS="2")
    assert code == 1
    assert len(calls(tmp_path)) == 4
    assert f"failed: {tmp_path}/out/aco_tsp/eoh/seed-2025" in said


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (("esopt",), {}, "the method is 'esopt'"),
        ((), {}, "the method is ''"),
        (("eoh",), {"REPS": "many"}, "REPS is 'many'"),
        (("eoh",), {"SEED": "-1"}, "SEED is '-1'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    """Else a typing error sets up an environment and downloads a model first."""
    code, said = script(tmp_path, 1000, *arguments, **variables)
    assert code == 2
    assert message in said
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("budget", [1000, 2000])
def test_help_says_what_can_be_set(budget: int) -> None:
    """Else the variables are known to those who read the script."""
    ended = subprocess.run(
        [ROOT / "scripts" / f"run_ahd_{budget}.sh", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    for name in ("TASKS", "REPS", "SEED", "MODEL", "BACKEND", "PRESET", "OUT", "esopt-sample", f"ahd-{budget}"):
        assert name in ended.stdout
