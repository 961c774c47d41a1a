"""Real servers for tests: started as users start them, killed as bad luck does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEY = "a-key-for-tests"
PROGRAM = "from eoh_esopt.cli.main import main; main()"
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "EOH_ESOPT_KEY": KEY,
    "CI": "true",
    "COLUMNS": "120",
}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, arguments)]


class Server:
    """A server on a free port of this machine; it is not waited for."""

    def __init__(self, model: Path, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._model, self._log = model, log
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        asked = command("serve", "--model", self._model, "--port", self.port, "--dtype", "bfloat16")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*asked, "--max-model-len", "512", "--", "--max-num-seqs", "16"],
                env=ENVIRONMENT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self, limit_s: float = 240.0) -> Server:
        """Wait until it is healthy."""
        until = time.monotonic() + limit_s
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return self
            except OSError:
                assert self.process.poll() is None, self._log.read_text()[-3000:]
                assert time.monotonic() < until, self._log.read_text()[-3000:]
                time.sleep(0.2)

    def kill(self) -> None:
        """As the system does when memory runs out: the process alone, not the ones that it has begun."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """As users do."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def ask(self, path: str, fields: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
        """Status and answer of a raw request."""
        body = None if fields is None else json.dumps(fields).encode()
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}", **headers}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body, given), timeout=120) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")


def helpers_of(server: Server) -> list[int]:
    """The processes that vLLM has begun for a server and that still live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, ValueError):
            continue
        if session == server.process.pid and int(folder.name) != server.process.pid:
            found.append(int(folder.name))
    return found


def soon(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Wait until something is so."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
