"""Real searches of other engines, each in a process of its own: where the engine is, and how a user's script is run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT_S = 600
SLEEPER = ("sleep", f"98765.{os.getpid()}")
"""Command of processes that programs leave behind: this test run's alone."""


@dataclass(frozen=True)
class Install:
    """One engine that scripts can be run against.

    Attributes:
        name: "eoh02", "eoh01", ...: prefix of its scripts.
        python: the interpreter.
        path: what goes on its path; empty for an engine that is installed there.
    """

    name: str
    python: str
    path: str = ""


_MARKS = {"eoh02": "eoh/run.py", "eoh01": "eoh/eoh.py"}
"""What tells the two engines of the name `eoh` apart, from the folder that goes on the path."""


def find(name: str) -> Install:
    """The engine, or a skipped test that says how to provide it."""
    places = [Path(one) / "eoh" / "src" for one in os.environ.get("EOH_REPO", "").split(os.pathsep) if one]
    spec = importlib.util.find_spec("eoh")
    installed = [Path(one).parent for one in (spec.submodule_search_locations or [])] if spec else []
    for place in [*places, *installed]:
        if (place / _MARKS[name]).is_file():
            for needed in ("joblib", "requests"):
                if importlib.util.find_spec(needed) is None:
                    pytest.skip(f"EoH needs {needed}: pip install joblib requests")
            return Install(name, sys.executable, str(place))
    pytest.skip(
        f"{name} was not found. Provide it by EOH_REPO, one or more folders with a clone of "
        f"https://github.com/FeiLiu36/EoH separated by {os.pathsep!r}: its main branch is EoH 0.2, its tag v0.1 EoH 0.1"
    )


def start(install: Install, folder: Path, script: str, **searches: Any) -> subprocess.Popen[str]:
    """Begin a script in a folder of its own.

    Args:
        install: the engine.
        folder: the script's working folder.
        script: its name without the engine's.
        searches: the options of each search it runs, by the name of the search's folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).parents[2]
    paths = [install.path, str(root), str(SCRIPTS), str(Path(__file__).parent)]
    environment = {**os.environ, "SLEEPER": SLEEPER[1], "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    return subprocess.Popen(
        [install.python, str(SCRIPTS / f"{install.name}_{script}.py"), json.dumps(searches)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(install: Install, folder: Path, script: str = "search", **searches: Any) -> dict[str, Ended]:
    """Run a script to its end; returns what became of each search."""
    process = start(install, folder, script, **searches)
    out, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, f"the script failed:\n{out}\n{errors}"
    results = json.loads(out.splitlines()[-1])
    return {name: Ended(results[name], folder / name) for name in searches}


@dataclass(frozen=True)
class Ended:
    """A search that has ended.

    Attributes:
        result: what the script says of it.
        folder: where it wrote.
    """

    result: dict[str, Any]
    folder: Path

    def events(self, kind: str = "", name: str = "esopt") -> list[dict[str, Any]]:
        """The events of our log, or those of one kind."""
        lines = (self.folder / "results" / name / "events.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return [one for one in found if not kind or one["event"] == kind]

    @property
    def ledger(self) -> dict[str, int]:
        """What the search spent."""
        value: dict[str, int] = self.events("end")[0]["ledger"]
        return value

    @property
    def statuses(self) -> Counter[str]:
        """How the evaluations ended."""
        return Counter(one["status"] for one in self.events("outcome"))

    def population(self, generation: int) -> list[dict[str, Any]]:
        """A population as the host wrote it."""
        path = self.folder / "results" / "pops" / f"population_generation_{generation}.json"
        value: list[dict[str, Any]] = json.loads(path.read_text())
        return value

    @property
    def generations(self) -> int:
        """How many populations the host wrote, the start population not counted."""
        return len(list((self.folder / "results" / "pops").glob("*.json"))) - 1


def put_quantised(folder: Path) -> None:
    """A model folder whose weights say that they are packed."""
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "gptq", "bits": 4}}')


def processes(*words: str) -> list[str]:
    """Ids of the processes with exactly that command line."""
    wanted = [*(word.encode() for word in words), b""]
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if entry.read_bytes().split(b"\0") == wanted:
                found.append(entry.parent.name)
    return found
