"""math-verify in processes of its own, asked without waiting: several at once, under caps, replaced when they end."""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any

from operators.errors import UserError

_ATTEMPTS = 2
_START_S = 120.0
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from train_adapters.math_tasks.verifier_worker import main
main(float(sys.argv[2]), int(sys.argv[3]))
"""


class Opinion(Enum):
    """What math-verify says of a prediction and the expected answer."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNREAD = "unread"
    """One of them is no mathematics that it reads."""
    TOO_COSTLY = "too costly"
    """The pair used up its processor time. That is the pair's doing, on however busy a machine."""


class VerifierFailed(Exception):
    """No opinion could be had, and not because of the pair as far as can be told."""


@dataclass(frozen=True)
class Caps:
    """What one process may use.

    Attributes:
        cpu_s: processor seconds of one pair.
        wall_s: seconds until a pair is given up; far above `cpu_s`, so that only a process that hangs meets it.
        memory_bytes: address space.
        pairs: after so many the process is replaced, for what the libraries keep.
    """

    cpu_s: float = 3.0
    wall_s: float = 120.0
    memory_bytes: int = 2 * 1024**3
    pairs: int = 2000


class Verifier:
    """A few processes and the threads that wait for them. They start when they are needed and end with this object.

    Args:
        processes: most pairs at once.
        caps: of each process.

    Raises:
        UserError: math-verify is not installed.
    """

    def __init__(self, processes: int = 2, caps: Caps = Caps()) -> None:
        if find_spec("math_verify") is None:
            raise UserError("math-verify is not installed. Install it by: pip install 'eoh-esopt[agents]'")
        self._caps = caps
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="math-verify")
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        for _ in range(processes):
            self._idle.put(_Process(caps))
        self._finalizer = weakref.finalize(self, _end, self._threads, self._idle, processes)

    async def ask(self, prediction: str, expected: str) -> Opinion:
        """Compare two LaTeX formulas, without their delimiters. Works from any event loop.

        Raises:
            VerifierFailed: two processes in a row ended or hung over the pair, without using up their time.
        """
        return await asyncio.wrap_future(self._threads.submit(self._ask, prediction, expected))

    def close(self) -> None:
        """End the processes. May be called again."""
        self._finalizer()

    def _ask(self, prediction: str, expected: str) -> Opinion:
        process = self._idle.get()
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    return process.ask({"prediction": prediction, "expected": expected})
                except VerifierFailed:
                    if attempt == _ATTEMPTS:
                        raise
            raise AssertionError("unreachable")
        finally:
            self._idle.put(process)


def _end(threads: ThreadPoolExecutor, idle: SimpleQueue[_Process], processes: int) -> None:
    threads.shutdown(cancel_futures=True)
    for _ in range(processes):
        idle.get().kill()


class _Process:
    """One worker process, started at its first pair and again after it has ended."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0

    def ask(self, pair: dict[str, str]) -> Opinion:
        """The opinion on a pair.

        Raises:
            VerifierFailed: the process ended or hung. The next pair gets a new one.
        """
        try:
            if self._asked >= self._caps.pairs:
                self.kill()
            process = self._process or self._started()
            self._asked += 1
            assert process.stdin is not None
            process.stdin.write(json.dumps(pair).encode() + b"\n")
            reply = self._reply(process, self._caps.wall_s)
        except (OSError, VerifierFailed) as error:
            if self.kill() == -signal.SIGPROF:
                return Opinion.TOO_COSTLY
            raise VerifierFailed(str(error)) from error
        if not reply["read"]:
            return Opinion.UNREAD
        return Opinion.EQUAL if reply["equal"] else Opinion.DIFFERENT

    def kill(self) -> int | None:
        """End the process, if there is one.

        Returns:
            How it ended, as `subprocess` counts.
        """
        process, self._process, self._asked = self._process, None, 0
        if process is None:
            return None
        if process.poll() is None:
            process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        self._errors.close()
        return code

    def _started(self) -> subprocess.Popen[bytes]:
        paths = json.dumps([os.path.abspath(path) for path in sys.path])
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = process = subprocess.Popen(
            [sys.executable, "-s", "-c", _BOOT, paths, str(self._caps.cpu_s), str(self._caps.memory_bytes)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
        self._reply(process, _START_S)
        return process

    def _reply(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        """The next line of the process.

        Raises:
            VerifierFailed: there is none in time, or the process has ended.
        """
        assert process.stdout is not None
        data, deadline = bytearray(), time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise VerifierFailed(f"math-verify gave no answer within {seconds:g} s")
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    process.wait()
                    raise VerifierFailed(f"the process of math-verify ended ({process.returncode}): {self._words()}")
                data += chunk
        reply: dict[str, Any] = json.loads(data)
        return reply

    def _words(self) -> str:
        """The last line that the process wrote of an error."""
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"
