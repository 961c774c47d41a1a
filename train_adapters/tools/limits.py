"""What a tool may use, and which files it is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from operators.errors import UserError

_MEBI = 1024**2
_LEAST = {"memory_bytes": 64 * _MEBI, "folder_bytes": _MEBI, "files": 16, "processes": 4, "output_chars": 200}


@dataclass(frozen=True)
class ToolLimits:
    """Caps on the calls of one episode.

    Attributes:
        wall_s: seconds of one call.
        memory_bytes: of one call: address space of each process, and memory of all of them together.
        folder_bytes: of each writable folder: the working folder, /tmp and /dev/shm.
        files: files and folders in each of them.
        processes: processes and threads of one call.
        output_chars: of the output that is shown; its beginning and its end are kept.

    Raises:
        UserError: a cap is too small to run anything.
    """

    wall_s: float = 20.0
    memory_bytes: int = 2048 * _MEBI
    folder_bytes: int = 64 * _MEBI
    files: int = 10_000
    processes: int = 64
    output_chars: int = 6_000

    def __post_init__(self) -> None:
        if not (math.isfinite(self.wall_s) and self.wall_s > 0):
            raise UserError(f"wall_s of a tool must be a positive number of seconds, not {self.wall_s}.")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise UserError(f"{name} of a tool must be at least {least}, not {getattr(self, name)}.")


@dataclass(frozen=True)
class Mount:
    """A file that the tool may read and not change.

    Attributes:
        source: where it lies.
        name: what it is called in the tool's working folder.

    Raises:
        UserError: the name is no plain file name.
    """

    source: Path
    name: str

    def __post_init__(self) -> None:
        if self.name in ("", ".", "..") or "/" in self.name or "\0" in self.name:
            raise UserError(f"{self.name!r} is no file name. Give the name of a file in the tool's working folder.")
