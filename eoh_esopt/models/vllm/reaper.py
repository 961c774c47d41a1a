"""Ends what a killed server leaves behind: vLLM's engine processes go on without it, and hold the memory.

A small process waits for the end of a pipe that only the server holds, and then ends every process that carries the
server's mark in its environment. Where there is no /proc nothing is found, and nothing happens.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "EOH_ESOPT_SERVER_MARK"
GRACE_S = 2.0
"""How long processes may take to end by themselves."""


def leave_nothing_behind() -> None:
    """Processes that this one begins from now on do not outlive it for long, even if it is killed."""
    mark = secrets.token_hex(8)
    reading, _ = os.pipe()  # the other end closes with this process
    subprocess.Popen([sys.executable, "-I", __file__, mark], stdin=reading, start_new_session=True)
    os.close(reading)
    os.environ[MARK] = mark


def reap(mark: str) -> None:
    """End the processes with a mark."""
    until = time.monotonic() + GRACE_S
    while (found := list(_marked(mark))) and time.monotonic() < until:
        time.sleep(0.1)
    for process in found:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    entry = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                yield int(folder.name)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    reap(sys.argv[1])
