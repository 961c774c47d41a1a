"""The versions of a skill: numbered files that are never changed, and a manifest of what came from what."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import write_atomically
from operators.errors import UserError

FOLDER = "skills"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Skill:
    """One version of a skill.

    Attributes:
        number: running number; 0 for the one that was begun with.
        text: Markdown; empty for none.
    """

    number: int
    text: str

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"skill_{self.number:03d}.md"

    @property
    def sha256(self) -> str:
        """What identifies its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


NO_SKILL = Skill(0, "")


@dataclass(frozen=True)
class Version:
    """What the manifest says of a version.

    Attributes:
        file: beside the manifest.
        sha256: of its text.
        parent: file of the version that it was made from; None for the one that was begun with.
        generation: after which it was made; None outside a training.
        state: begun, proposed, accepted or rolled_back.
    """

    file: str
    sha256: str
    parent: str | None
    generation: int | None
    state: str


def read_skill(path: Path) -> str:
    """The text of a skill in a file.

    Raises:
        UserError: there is none, it is no text, or it is empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"Cannot read the skill {path}: {error}. Give a Markdown file in UTF-8.") from error
    if not text.strip():
        raise UserError(f"The skill {path} is empty. Give a file that says something, or leave out --skill.")
    return text


def used(path: Path | None) -> dict[str, Any]:
    """What an evaluation says of the skill that it was made with; nothing where there was none."""
    return {} if path is None else {"skill": {"file": str(path), "sha256": Skill(0, read_skill(path)).sha256}}


def keep(folder: Path, skill: Skill) -> None:
    """Write a version.

    Raises:
        UserError: the folder or the file cannot be written.
    """
    make(folder)
    write_atomically(folder / skill.file, skill.text)


def kept(folder: Path, number: int, sha256: str) -> Skill:
    """Read a version again.

    Raises:
        UserError: its file is missing, or has changed.
    """
    path = folder / Skill(number, "").file
    try:
        skill = Skill(number, path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"Cannot read the skill {path}: {error}. Bring the file back.") from error
    if skill.sha256 != sha256:
        raise UserError(
            f"The skill {path} has changed: its hash was {sha256[:12]}, and is {skill.sha256[:12]} now. Bring it back."
        )
    return skill


def write_manifest(folder: Path, versions: Sequence[Version]) -> None:
    """Write the manifest, whole or not at all.

    Raises:
        UserError: it cannot be written.
    """
    write_atomically(folder / MANIFEST, json.dumps({"versions": [asdict(one) for one in versions]}, indent=1) + "\n")


def make(folder: Path) -> None:
    """Make a folder, and those it lies in.

    Raises:
        UserError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make {folder}: {error.strerror}. Make room or choose another folder.") from error
