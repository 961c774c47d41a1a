"""One episode's tool: a warden in its walls, begun at the first call, ended with the episode."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from train_adapters.tools.limits import ToolLimits
from train_adapters.tools.report import ToolEnd, ToolResult, lost, result_of

_START_S = 60.0
_GRACE_S = 15.0
"""What a warden may take beyond the time limit, to end what a command left and to report."""

_LONGEST_LINE = 4 * 1024**2
_LONGEST_COMMAND = 100_000
"""Bytes; the kernel takes 128 KiB."""

_running: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class ToolFailed(Exception):
    """The tool cannot be had, by no fault of a command's."""


@dataclass(frozen=True)
class Opening:
    """How a warden is begun.

    Attributes:
        command: its command line.
        environment: of it.
        descriptors: it inherits; closed here once it runs.
        cleanup: called after its end.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...] = ()
    cleanup: Callable[[], None] = lambda: None


class Box:
    """The tool of one episode. Files survive from one call to the next, processes do not.

    Args:
        limits: of its calls.
        opening: makes the opening of a warden.
    """

    def __init__(self, limits: ToolLimits, opening: Callable[[], Opening]) -> None:
        self._limits = limits
        self._make_opening = opening
        self._opening: Opening | None = None
        self._warden: asyncio.subprocess.Process | None = None

    async def run(self, command: str) -> ToolResult:
        """Run a command; one at a time.

        Returns:
            What came of it, whatever it did.

        Raises:
            ToolFailed: the tool cannot be begun.
        """
        text = command.replace("\0", "").encode(errors="replace").decode()  # without half characters
        if len(text.encode()) > _LONGEST_COMMAND:
            return ToolResult(f"[The command is longer than {_LONGEST_COMMAND:,} bytes.]", ToolEnd.EXITED, None)
        async with _turn():
            if self._warden is None:
                await self._begin()
            try:
                result = result_of(await self._ask(text), self._limits)
            except (OSError, ValueError, TypeError, KeyError, asyncio.TimeoutError):
                await self.close()
                return lost("The command took what runs it with it.")
            except BaseException:
                await self.close()
                raise
        if result.end is ToolEnd.FILES:
            await self.close()
        return result

    async def close(self) -> None:
        """End all processes; the files are gone with them. May be called again."""
        warden, self._warden = self._warden, None
        opening, self._opening = self._opening, None
        if warden is not None:
            with contextlib.suppress(ProcessLookupError):
                warden.kill()
            await warden.wait()
            # Else the pipes are closed when the collector gets to it, after the loop they belong to.
            warden._transport.close()  # type: ignore[attr-defined]
        if opening is not None:
            opening.cleanup()

    async def _begin(self) -> None:
        try:
            self._opening = self._make_opening()
            self._warden = await _spawned(self._opening)
            said = await asyncio.wait_for(self._line(), _START_S)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            await self.close()
            raise ToolFailed(f"the tool cannot be started: {error}") from error
        except BaseException:
            await self.close()
            raise
        if not is_ready(said):
            await self.close()
            raise ToolFailed(f"the tool cannot be started: {said.decode(errors='replace').strip()[:300]}")

    async def _ask(self, command: str) -> dict[str, Any]:
        assert self._warden is not None
        assert self._warden.stdin is not None
        self._warden.stdin.write(request_line(command))
        await self._warden.stdin.drain()
        report = json.loads(await asyncio.wait_for(self._line(), self._limits.wall_s + _GRACE_S))
        if not isinstance(report, dict) or not report.get("gone"):
            raise ValueError("no report, or processes that resist")
        return report

    async def _line(self) -> bytes:
        assert self._warden is not None
        assert self._warden.stdout is not None
        return await self._warden.stdout.readline()


async def _spawned(opening: Opening) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *opening.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=opening.environment,
            pass_fds=opening.descriptors,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
    finally:
        for descriptor in opening.descriptors:
            os.close(descriptor)


def request_line(command: str) -> bytes:
    """A command as the warden reads it."""
    return json.dumps({"command": command}).encode() + b"\n"


def is_ready(line: bytes) -> bool:
    """Whether it is a warden's first line."""
    return line.strip() == b'{"ready": true}'


def _turn() -> asyncio.Semaphore:
    """As many calls at a time as there are cores, and some: else their time limits would tell of the others' work."""
    loop = asyncio.get_running_loop()
    if loop not in _running:
        _running[loop] = asyncio.Semaphore(2 * (os.cpu_count() or 2))
    return _running[loop]
