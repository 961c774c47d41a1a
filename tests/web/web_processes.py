"""Processes that a test has started, and those that these have started."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> set[int]:
    """A process, and all that it has started."""
    found = {pid}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            found |= children(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
