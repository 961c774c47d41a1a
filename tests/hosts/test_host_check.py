"""`eoh-esopt host check`: what it finds, what it says of it, and its exit codes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from host_runs import find

from eoh_esopt.hosts.installs import KINDS, check, in_clone
from operators.errors import UserError

ROOT = Path(__file__).parents[2]


def command(*arguments: object, repositories: str = "") -> subprocess.CompletedProcess[str]:
    """`eoh-esopt host check` as its users run it."""
    return subprocess.run(
        [sys.executable, "-m", "eoh_esopt", "host", "check", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "EOH_REPO": repositories, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def put_clone(folder: Path, **modules: str) -> Path:
    """A clone of something that looks like EoH 0.2 from outside."""
    package = folder / "eoh" / "src" / "eoh"
    package.mkdir(parents=True)
    for name, text in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(text)
    return folder


def test_clone_with_other_seams_fails_by_name(tmp_path: Path) -> None:
    """Without it a user of a fork or of a later version learns of it in the middle of a search."""
    run = (
        "class EOH:\n    def run(self): ...\nclass EoH:\n    def __init__(self): self._config = self._problem = None\n"
    )
    ended = command("--repo", put_clone(tmp_path, run=run), "--format", "json")
    assert ended.returncode == 1, ended.stderr
    [found] = [one for one in json.loads(ended.stdout) if one["host"] == "EoH 0.2"]
    seams = {name: there for name, there, _ in found["seams"]}
    assert seams["EOH.run"]
    assert not seams["EOH._save"]
    assert not found["works"]
    assert "seams are missing" in found["error"]


def test_clone_that_cannot_be_imported_says_what_is_missing(tmp_path: Path) -> None:
    """EoH 0.2 needs requests and does not install it: the check must name it rather than fail itself."""
    checked = check(in_clone(put_clone(tmp_path, run="import no_such_package\n")))
    assert not checked.works
    assert checked.error == "eoh.run cannot be imported: No module named 'no_such_package'"


def test_clone_that_ends_the_process(tmp_path: Path) -> None:
    """Without it the check would end in a traceback of its own."""
    checked = check(in_clone(put_clone(tmp_path, run="import sys\nsys.exit('no licence')\n")))
    assert not checked.works
    assert checked.error == "the check ended with code 1: no licence"


def test_folder_without_a_host_is_refused(tmp_path: Path) -> None:
    """Without it a misspelt folder looks like a machine without hosts."""
    ended = command(repositories=str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"Error: {tmp_path} holds no host")
    with pytest.raises(UserError, match="Give the folder of a clone"):
        in_clone(tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("eoh") is not None or importlib.util.find_spec("llm4ad") is not None,
    reason="a host is installed here",
)
def test_machine_without_hosts_is_told_where_to_get_one() -> None:
    """Without it a user who has installed none sees an empty table and an exit code."""
    ended = command()
    assert ended.returncode == 1
    assert "No host was found" in ended.stdout
    assert "pip install llm4ad" in ended.stdout
    assert command("--format", "json").stdout == "[]\n"


@pytest.mark.parametrize("name", ["eoh02", "eoh01", "llm4ad"])
def test_model_learns_in_the_dry_run_on_each_host(name: str) -> None:
    """Without it the check could pass hosts that do not work, or fail those that do."""
    if name == "llm4ad":
        if importlib.util.find_spec("llm4ad") is None:
            pytest.skip("LLM4AD is not installed here, it needs NumPy below 2: scripts/test_hosts.sh tests with it")
        repositories = ""
    else:
        repositories = str(Path(find(name).path).parents[1])
    ended = command("--format", "json", repositories=repositories)
    wanted = next(kind.name for kind in KINDS if kind.adapter == name)
    [found] = [one for one in json.loads(ended.stdout) if one["host"] == wanted]
    assert ended.returncode == 0, found
    assert all(there for _, there, _ in found["seams"])
    assert found["run"]["generations"] == 2
    assert found["run"]["updates"] > 0
    assert found["run"]["model_calls"] >= found["run"]["candidates"] > 0
