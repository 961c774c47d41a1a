"""The parent's end of one warm worker: start it, hand it a candidate, read its report, kill it. Decides nothing."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.sandbox import frames
from eoh_esopt.sandbox.isolation import Layer
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError

_START_S = 120.0
_END_S = 5.0
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from eoh_esopt.sandbox.worker import main
main(sys.argv[2])
"""
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONSAFEPATH": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class WorkerGone(Exception):
    """The worker ended or fell silent; the message says what is known."""


@dataclass
class Job:
    """One candidate on its way through a worker.

    Attributes:
        index: what it is reported under.
        code: the source.
        instances: which instances it runs on; all when None.
        attempt: 1 for the first try.
        began: when a worker got it, by the monotonic clock.
        deadline: when the worker is overdue, by the same.
    """

    index: int
    code: bytes
    instances: tuple[int, ...] | None = None
    attempt: int = 1
    began: float = 0.0
    deadline: float = 0.0


class Worker:
    """A running worker process.

    Args:
        spec: the problem it loads; None for one that only reports its layers.
        limits: caps on each candidate.
        mode: which isolation to try.
        folder: where its scratch folder and its error output go; must exist.

    Attributes:
        job: the candidate it has, None when idle.
        layers: what the host offers it; empty before `wait_ready`.

    Raises:
        WorkerGone: the process could not be started.
    """

    def __init__(self, spec: ProblemSpec | None, limits: Limits, mode: str, folder: Path) -> None:
        self.job: Job | None = None
        self.layers: list[Layer] = []
        self._data = bytearray()
        scratch = folder / "scratch"
        scratch.mkdir(mode=0o700, exist_ok=True)
        self._errors = folder / "errors"
        problem = spec.to_json() if spec else ""
        setup = {"problem": problem, "limits": asdict(limits), "mode": mode, "scratch": str(scratch)}
        paths = json.dumps([os.path.abspath(path) for path in sys.path])
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-s", "-c", _BOOT, paths, json.dumps(setup)],
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=scratch,
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            raise WorkerGone(f"cannot start a worker: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()

    def fileno(self) -> int:
        """The descriptor that becomes readable when there is something to `receive`."""
        return self._replies

    def wait_ready(self) -> None:
        """Wait until the problem is loaded.

        Raises:
            UserError: the problem cannot be loaded.
            WorkerGone: the worker ended, or took too long.
        """
        deadline = time.monotonic() + _START_S
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self], [], [], left)[0] and (frame := self.receive()) is not None:
                header, _ = frame
                if "error" in header:
                    raise UserError(str(header["error"]))
                self.layers = [Layer(*layer) for layer in header["layers"]]
                return
        raise WorkerGone(f"a worker was not ready after {_START_S:g} s")

    def send(self, job: Job) -> None:
        """Hand the idle worker a candidate.

        Raises:
            WorkerGone: the worker is not there any more.
        """
        self.job = job
        header = {} if job.instances is None else {"instances": list(job.instances)}
        try:
            frames.write(self._requests, frames.pack(header, job.code))
        except OSError as error:
            raise WorkerGone(self._last_words()) from error

    def receive(self) -> tuple[dict[str, Any], memoryview] | None:
        """Read what is there; the report once it is complete, else None. Call when readable.

        Raises:
            WorkerGone: the worker ended.
        """
        chunk = os.read(self._replies, 1 << 20)
        if not chunk:
            raise WorkerGone(self._last_words())
        self._data += chunk
        total = frames.size(self._data)
        if total is None or len(self._data) < total:
            return None
        data, self._data = self._data, bytearray()
        return frames.unpack(data)

    def kill(self) -> None:
        """End the worker and whatever it runs, and wait for that. May be called again."""
        if self._process.stdout is None or self._process.stdout.closed:
            return
        # The guardian leads the group; the zygote follows it by the parent-death signal, and a candidate the zygote.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        give_up = time.monotonic() + _END_S
        while (left := give_up - time.monotonic()) > 0:
            if select.select([self], [], [], left)[0] and not os.read(self._replies, 1 << 20):
                break
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").split("\n") if self._errors.exists() else []
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"the worker ended{': ' + last if last else ''}"


def _environment() -> dict[str, str]:
    """What a worker sees of the environment: nothing of the user's but where shared libraries lie."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {**_ENVIRONMENT, **kept}
