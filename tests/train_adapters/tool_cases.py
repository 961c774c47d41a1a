"""What the tests of tools share: a sandbox with small limits, on machines where there can be one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from operators.errors import UserError
from train_adapters.tools import Mount, Sandbox, ToolLimits, ToolResult, make_sandbox

MEBI = 1024**2
SMALL = ToolLimits(
    wall_s=10.0, memory_bytes=512 * MEBI, folder_bytes=8 * MEBI, files=500, processes=24, output_chars=2_000
)


def sandbox(limits: ToolLimits = SMALL, *, hidden: Sequence[Path] = ()) -> Sandbox:
    """A sandbox with walls. Where the machine offers none the test is skipped, but never in CI."""
    try:
        return make_sandbox(limits, hidden=hidden)
    except UserError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def run(*commands: str, tools: Sandbox | None = None, mounts: Sequence[Mount] = ()) -> list[ToolResult]:
    """Run commands one after another in one episode."""

    async def episode() -> list[ToolResult]:
        box = (tools or sandbox()).open(mounts)
        try:
            return [await box.run(command) for command in commands]
        finally:
            await box.close()

    return asyncio.run(episode())
