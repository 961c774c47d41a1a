"""What a candidate may leave behind on this machine: processes and files.

Processes are seen on Linux only; elsewhere none is ever found.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MARKER = "eoh-esopt-hostile-marker"
"""Name of every file that a hostile program tries to leave outside its working folder."""

_WORKER = b"eoh_esopt.sandbox.worker"
"""Part of the command line of a worker, and so of all that is forked from it."""


def family(pid: int) -> set[int]:
    """Ids of the living processes that descend from a process."""
    parents = dict(_parents())
    found: set[int] = set()
    while grown := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= grown
    return found


def sandboxed(pid: int) -> set[int]:
    """The workers of a process, all that descends from them, and what left them for another parent.

    A worker's command line names a folder that no other worker has, and a candidate is forked, so it shares it.
    """
    lines = {pid: line for pid in family(pid) if _WORKER in (line := _command_line(pid))}
    found = set(lines)
    for worker in lines:
        found |= family(worker)
    return found | {other for other, _ in _parents() if _command_line(other) in lines.values()}


def files() -> set[Path]:
    """Marker files in the folders that hostile programs try, and whatever lies in a working folder of the sandbox."""
    found = {folder / MARKER for folder in _folders() if os.path.lexists(folder / MARKER)}
    for scratch in Path(tempfile.gettempdir()).glob("eoh-esopt-*/worker-*/scratch"):
        with contextlib.suppress(OSError):
            found |= set(scratch.iterdir())
    return found


def remove_markers() -> None:
    """Delete the marker files that are there."""
    for path in files():
        if path.name == MARKER:
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _folders() -> set[Path]:
    prefix = Path(sys.prefix)
    fixed = (tempfile.gettempdir(), "/tmp", "/dev/shm", "/root", ".")
    return {prefix, *prefix.parents, Path.home(), *(Path(folder).absolute() for folder in fixed)}


def _parents() -> Iterator[tuple[int, int]]:
    """(process, parent) of each living process."""
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else []:
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                if state != "Z":
                    yield int(entry.name), int(parent)


def _command_line(pid: int) -> bytes:
    """The command line of a process; empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
