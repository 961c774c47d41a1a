"""A program in an environment of its own that answers lines of JSON with lines of JSON.

Requests are {"id", "do", "with"}; each has one reply, {"id", "ok": {...}} or {"id", "error": {"kind", "text"}}.
The program begins by saying {"id": 0, "ok": {"protocol": N, ...}}, and ends with its standard input.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from operators.errors import UserError
from train_adapters.webarena.failures import InfraFailed

PROTOCOL = 1
"""Both sides must have the same."""

_START_SECONDS = 60.0
_TAIL = 500


class LineProcess:
    """The process, started when it is first called, and again after it was lost.

    Args:
        python: of the environment the program runs in.
        program: its file.
        arguments: of the program.
    """

    def __init__(self, python: Path, program: Path, arguments: Sequence[str] = ()) -> None:
        self._command = [str(python), "-I", str(program), *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as this object
        self._buffer = b""
        self._number = 0

    @property
    def pid(self) -> int | None:
        """None where it does not run."""
        return None if self._process is None else self._process.pid

    def start(self) -> Mapping[str, Any]:
        """Start it.

        Returns:
            What it said of itself.

        Raises:
            InfraFailed: it did not start, or not in time.
            UserError: it is of another release.
        """
        self._errors.truncate(0)
        self._buffer, self._number = b"", 0
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is the trainer's, which ends its workers
        )
        said: Mapping[str, Any] = self._receive(_START_SECONDS)["ok"]
        if said["protocol"] != PROTOCOL:
            self.kill()
            raise UserError(f"{self._command[2]} speaks protocol {said['protocol']}, not {PROTOCOL}. Install it anew.")
        return said

    def call(self, command: str, seconds: float, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises:
            InfraFailed: it came to nothing; the process has been ended if it was to blame.
        """
        self._number += 1
        self._send({"id": self._number, "do": command, "with": arguments})
        reply = self._receive(seconds)
        if "error" in reply:
            raise InfraFailed(reply["error"]["kind"], reply["error"]["text"])
        found: dict[str, Any] = reply["ok"]
        return found

    def close(self) -> None:
        """End it, after what it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.close()
            process.wait(timeout=5)
        except (subprocess.TimeoutExpired, OSError):
            _kill(process)
        process.stdout.close()

    def kill(self) -> None:
        """End it at once."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            assert process.stdout is not None
            process.stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost() from error

    def _receive(self, seconds: float) -> dict[str, Any]:
        """The reply to the last request."""
        assert self._process is not None
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self.kill()
                raise InfraFailed("worker_timeout", f"no answer within {seconds:.0f} s")
            read = os.read(self._process.stdout.fileno(), 1 << 20)
            if not read:
                raise self._lost()
            self._buffer += read
        line, self._buffer = self._buffer.split(b"\n", 1)
        reply: dict[str, Any] = json.loads(line)
        if reply["id"] != self._number:
            self.kill()
            raise InfraFailed("worker_lost", f"answer {reply['id']} to request {self._number}")
        return reply

    def _lost(self) -> InfraFailed:
        self.kill()
        self._errors.seek(0)
        said = " ".join(self._errors.read()[-_TAIL:].decode(errors="replace").split())
        return InfraFailed("worker_lost", f"{Path(self._command[2]).name} has ended. {said}".strip())


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
