"""A browser as the trainer sees it: a worker process with one Chromium, see `worker.py`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from train_adapters.webarena.browser.line_process import LineProcess
from train_adapters.webarena.failures import InfraFailed

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class BrowserOptions:
    """What a browser is run with.

    Attributes:
        executable: Chromium.
        view: "html" for the document, "axtree" for the accessibility tree.
        episodes: after so many, worker and Chromium are ended and started anew, which bounds the memory of both:
            Playwright 1.44 keeps about 8 KB of every time that it waited for a page.
        action_ms: how long an action may take.
        navigation_ms: how long a page may take.
    """

    executable: str
    view: str = "html"
    episodes: int = 50
    action_ms: float = 5_000
    navigation_ms: float = 30_000

    def call_seconds(self, command: str) -> float:
        """How long a call may take: an action that leads to a page, and the look at it; logging in, with more pages."""
        actions, pages = (3, 4) if command == "login" else (1, 2)
        return (actions * self.action_ms + pages * self.navigation_ms) / 1000 + 15


class Browser:
    """A browser, started when it is first used and again after it was lost. Its calls block.

    Args:
        python: of the environment that BrowserGym is installed in.
        options: what it is run with.

    Attributes:
        versions: of BrowserGym, Playwright and Chromium; empty before the first use.
    """

    def __init__(self, python: Path, options: BrowserOptions) -> None:
        self._process = LineProcess(python, _WORKER, [json.dumps(asdict(options))])
        self._options = options
        self._chromium: int | None = None
        self._episodes = 0
        self.versions: Mapping[str, Any] = {}

    @property
    def pids(self) -> tuple[int | None, int | None]:
        """Of the worker and of its Chromium; None for what does not run."""
        return self._process.pid, self._chromium

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Have the worker do something, see its commands.

        Raises:
            InfraFailed: it came to nothing.
        """
        if command == "open" and self._episodes >= self._options.episodes:
            self.close()
        try:
            if self._process.pid is None:
                self.versions = self._process.start()
                self._chromium, self._episodes = self.versions["pid"], 0
            self._episodes += command == "open"
            found = self._process.call(command, self._options.call_seconds(command), arguments)
        except InfraFailed:
            if self._process.pid is None:
                self._end_chromium()
            raise
        self._chromium = found.get("pid", self._chromium)
        return found

    def close(self) -> None:
        """End it. Another call would start it again."""
        self._process.close()
        self._end_chromium()

    def _end_chromium(self) -> None:
        """It has a process group of its own, and ends by itself when its worker is gone; this is for one that hangs."""
        chromium, self._chromium = self._chromium, None
        with suppress(FileNotFoundError, ProcessLookupError):
            if chromium is not None and b"chrom" in Path(f"/proc/{chromium}/cmdline").read_bytes():
                os.kill(chromium, signal.SIGKILL)
