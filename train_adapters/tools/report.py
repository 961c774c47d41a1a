"""What became of a command, and how the model is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from train_adapters.tools.limits import ToolLimits

_UNSEEN = {code: "\ufffd" for code in (*range(32), 127) if chr(code) not in "\n\t"}
_STDERR_SHARE = 3
"""Part of the output that errors may take while there is output too: one in so many."""


class ToolEnd(str, Enum):
    """How a call ended."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    PROCESSES = "processes"
    FILES = "files"
    OUTPUT = "output"
    BROKEN = "broken"
    """What runs the commands was gone afterwards."""


@dataclass(frozen=True)
class ToolResult:
    """What became of a command.

    Attributes:
        text: what the model is shown: output, errors, exit code, and what ended it.
        end: how it ended.
        exit_code: of the shell, negative for a signal; None where it did not end by itself.
    """

    text: str
    end: ToolEnd
    exit_code: int | None


def result_of(report: Mapping[str, Any], limits: ToolLimits) -> ToolResult:
    """From the warden's report, which a command may have tampered with, to what the model is shown.

    Raises:
        ValueError, TypeError, KeyError: it is no report.
    """
    end = ToolEnd(report["end"])
    code = None if report["status"] is None or end is not ToolEnd.EXITED else int(report["status"])
    errors = shown(report["stderr"], limits.output_chars)
    if int(report["stdout"]["total"]):
        errors = shown(report["stderr"], limits.output_chars // _STDERR_SHARE)
    output = shown(report["stdout"], limits.output_chars - len(errors))
    parts = [output, f"[stderr]\n{errors}" if errors.strip() else "", _closing(end, code, limits)]
    return ToolResult("\n".join(part.strip("\n") for part in parts if part.strip()) or "[no output]", end, code)


def lost(why: str) -> ToolResult:
    """What the model is shown where what ran its command is gone."""
    return ToolResult(f"[{why} The tool was started anew: its folder is empty again.]", ToolEnd.BROKEN, None)


def shown(stream: Mapping[str, Any], most: int) -> str:
    """A stream in at most that many characters, but for the words on what is left out: its beginning and its end."""
    head, tail, total = str(stream["head"]), str(stream["tail"]), int(stream["total"])
    if not tail and len(head) <= most:
        return head.translate(_UNSEEN)
    half = most // 2
    first, last = head[:half], (tail or head)[-half:] if half else ""
    left_out = total - len(first.encode(errors="replace")) - len(last.encode(errors="replace"))
    return f"{first}\n[... {left_out:,} bytes left out ...]\n{last}".translate(_UNSEEN)


def _closing(end: ToolEnd, code: int | None, limits: ToolLimits) -> str:
    if end is ToolEnd.EXITED:
        return f"[exit code {code}]" if code else ""
    return {
        ToolEnd.TIMEOUT: f"[ended after {limits.wall_s:g} s]",
        ToolEnd.MEMORY: f"[ended: more than {limits.memory_bytes // 1024**2} MiB of memory]",
        ToolEnd.PROCESSES: f"[ended: more than {limits.processes} processes]",
        ToolEnd.FILES: f"[ended: more than {limits.files:,} files; the folder is empty again]",
        ToolEnd.OUTPUT: "[ended: too much output]",
        ToolEnd.BROKEN: "[ended]",
    }[end]
