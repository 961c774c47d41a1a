"""Which hosts are there, and whether the plug-in works with each of them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from operators.errors import UserError

LIMIT_S = 300
"""A check that takes longer has failed."""


@dataclass(frozen=True)
class Kind:
    """A kind of host, and how it is told from others by its files.

    Attributes:
        adapter: module of this package.
        name: the host, for people.
        package: what is imported.
        mark: a file of the package that no other kind has.
        source: where the package's folder lies in a clone.
    """

    adapter: str
    name: str
    package: str
    mark: str
    source: str


KINDS = (
    Kind("eoh02", "EoH 0.2", "eoh", "run.py", "eoh/src"),
    Kind("eoh01", "EoH 0.1", "eoh", "eoh.py", "eoh/src"),
    Kind("llm4ad", "LLM4AD", "llm4ad", "method/eoh/eoh.py", "."),
)


@dataclass(frozen=True)
class Install:
    """A host that is there.

    Attributes:
        kind: of the host.
        version: as its installation states it; empty for a clone.
        package: its package's folder.
        path: what has to go on the path for it; empty where it is installed.
    """

    kind: Kind
    version: str
    package: Path
    path: str = ""


def installed() -> Iterator[Install]:
    """The hosts that can be imported here. Imports none of them."""
    for package in dict.fromkeys(kind.package for kind in KINDS):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for kind in _kinds(package, Path(place)):
                yield Install(kind, _version(package), Path(place))


def in_clone(folder: Path) -> Install:
    """The host in a clone of its repository.

    Raises:
        UserError: the folder holds none.
    """
    for kind in KINDS:
        source = folder / kind.source
        if (source / kind.package / kind.mark).is_file():
            return Install(kind, "", source / kind.package, str(source.resolve()))
    raise UserError(
        f"{folder} holds no host: looked for eoh/src/eoh of EoH 0.2 or 0.1 and for llm4ad. Give the folder of a clone, "
        "such as one of https://github.com/FeiLiu36/EoH"
    )


def _kinds(package: str, place: Path) -> list[Kind]:
    return [kind for kind in KINDS if kind.package == package and (place / kind.mark).is_file()]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        seams: name, whether it is there, and what is there instead.
        error: why the check ended early; empty where it did not.
        run: what the dry run did; None where it was not made.
    """

    seams: list[tuple[str, bool, str]]
    error: str
    run: dict[str, Any] | None

    @property
    def works(self) -> bool:
        """Whether everything is there and the model learnt in a search on the host's own loop."""
        return not self.error and self.run is not None and bool(self.run["learnt"])


def check(install: Install) -> Checked:
    """Look for the seams of a host, and make a dry run, in a process of its own."""
    root = str(Path(__file__).parents[2])
    paths = [install.path, root, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, "-m", "eoh_esopt.hosts.dry_run", install.kind.adapter]
    with tempfile.TemporaryDirectory(prefix="eoh-esopt-check-") as folder:
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Checked([], f"the dry run did not end within {LIMIT_S} s", None)
    try:
        report = json.loads(ended.stdout.splitlines()[-1])
        return Checked([tuple(one) for one in report["seams"]], report["error"], report["run"])
    except (ValueError, IndexError, KeyError, TypeError):
        last = [line for line in ended.stderr.splitlines() if line.strip()][-1:]
        return Checked([], f"the check ended with code {ended.returncode}: {' '.join(last) or 'no word'}", None)
