"""The shell scripts: they parse, and explain themselves, wherever they are called from. No set-up is run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"]
RUNNABLE = [path for path in SCRIPTS if path.name not in ("common.sh", "ahd.sh", "run")]


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def source_common(code: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run shell code after the shared set-up functions were read."""
    common = ROOT / "scripts" / "common.sh"
    return run("bash", "-c", f'set -euo pipefail; source "{common}"; {code}', cwd=cwd, **variables)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse(script: Path, tmp_path: Path) -> None:
    """Else a syntax error in a rarely taken branch stops a user half-way."""
    assert run("bash", "-n", str(script), cwd=tmp_path).stderr == ""


@pytest.mark.parametrize("script", RUNNABLE, ids=lambda path: path.name)
def test_help_works_from_another_directory_and_changes_nothing(script: Path, tmp_path: Path) -> None:
    """Else asking what a script does already starts a long set-up, or works only in the repository root."""
    result = run(str(script), "--help", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"Usage: scripts/{script.name}" in result.stdout
    assert "PYTHON  " in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", [*RUNNABLE, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_scripts_are_executable_and_strict(script: Path) -> None:
    """Else a fresh clone answers "permission denied", or a failed step is passed over in silence."""
    assert os.access(script, os.X_OK)
    assert re.match(r"#!/usr/bin/env bash\n(#.*\n)*set -euo pipefail\n", script.read_text())


def test_an_unknown_option_of_the_set_up_is_refused(tmp_path: Path) -> None:
    """Else a misspelt --dev installs something else than wanted."""
    result = run(str(ROOT / "scripts" / "setup_env.sh"), "--devel", cwd=tmp_path)
    assert result.returncode == 2
    assert "unknown option --devel" in result.stderr


def test_a_python_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """Else PYTHON=... is passed over, and the environment is made with another Python than asked for."""
    result = source_common("find_python", tmp_path, PYTHON="/nowhere/python")
    assert result.returncode == 2
    assert "PYTHON=/nowhere/python is not a Python 3.10 or newer" in result.stderr


def test_the_state_changes_with_what_was_installed(tmp_path: Path) -> None:
    """Else a changed choice of PyTorch index is taken for a finished set-up, or every call installs again."""
    if not (ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("the tests run in an environment other than .venv")
    first, again = (source_common("setup_state", tmp_path).stdout for _ in range(2))
    other = source_common("setup_state", tmp_path, EOH_ESOPT_TORCH_INDEX="https://example.org/simple").stdout
    assert re.fullmatch(r"[0-9a-f]{64}\n", first)
    assert first == again != other


def test_constraints_are_exact_and_leave_python_3_10_alone(tmp_path: Path) -> None:
    """Else two installations differ, or pip finds no version at all on Python 3.10."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[\w-]+==[\d.]+(; python_version >= "3\.\d+")?', line) for line in lines)
    newer_only = {line.partition("==")[0] for line in lines if "python_version" in line}
    assert {"numpy", "scipy", "transformers"} <= newer_only
