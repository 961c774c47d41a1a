"""Peak memory of this process: of its GPUs where it uses any, else of its resident set."""

from __future__ import annotations

import resource
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def peak_bytes() -> int:
    """The most memory that was in use at one time since the last reset."""
    if torch.cuda.is_available():
        return sum(torch.cuda.max_memory_allocated(gpu) for gpu in range(torch.cuda.device_count()))
    try:
        lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Begin to measure anew; where the system does not allow that, the peak is that of the whole process."""
    if torch.cuda.is_available():
        for gpu in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(gpu)
        return
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return
