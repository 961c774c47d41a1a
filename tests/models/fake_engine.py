"""An engine of a served model whose weights are a record of what was done to them, and that fails when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eoh_esopt.models.vllm.wire import hash_of
from operators.errors import UserError


class FakeEngine:
    """Weights as (updates, direction); a broken update leaves weights that no sequence of updates gives.

    Attributes:
        fails: names of steps that fail, each once: "update" before it does anything, "update+" half-way, "update-"
            after it did everything.
        held: when set, every step waits for it.
        log: the steps taken.
    """

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.direction: tuple[int, float] | None = None
        self.fresh = True
        self.fails: list[str] = []
        self.held: asyncio.Event | None = None
        self.log: list[str] = []

    @property
    def live(self) -> str:
        """What the model would compute with."""
        return json.dumps([self.updates, self.direction])

    async def open(self, scope: str, restore: str) -> dict[str, Any]:
        if scope == "none":
            raise UserError("Unknown scope 'none'.")
        if (self.updates, self.direction) != ([], None):
            raise RuntimeError("these are not the base weights")
        await self._step("open", [], None)
        facts = {"parameters": 10, "scope_elements": 10 if scope == "full" else 2, "extra_bytes": 40}
        return {**facts, "dtype": "bfloat16", "device": "cpu"}

    async def reset(self) -> None:
        await self._step("reset", [], None)

    async def perturb(self, seed: int, sigma: float) -> None:
        if self.direction is not None:
            raise RuntimeError("a direction is active")
        await self._step("perturb", self.updates, (seed, sigma))

    async def restore(self) -> None:
        await self._step("restore", self.updates, None)

    async def update(self, update: Mapping[str, Any]) -> None:
        if self.direction is not None:
            raise RuntimeError("a direction is active")
        await self._step("update", [*self.updates, dict(update)], None)

    async def forget(self) -> None:
        self._maybe_fail("forget")
        self.fresh = True

    async def checksum(self) -> str:
        self._maybe_fail("checksum")
        return hash_of(self.updates)

    async def export(self, folder: Path, *, float32: bool) -> None:
        self._maybe_fail("export")
        (folder / "weights.json").write_text(json.dumps([self.updates, float32]))

    async def _step(self, name: str, updates: list[Any], direction: tuple[int, float] | None) -> None:
        self.log.append(name)
        if self.held is not None:
            await self.held.wait()
        self._maybe_fail(name)
        self.fresh = False
        if f"{name}+" in self.fails:
            self.updates = [*self.updates, "half"] if name in ("update", "open", "reset") else self.updates
            self.direction = direction if name == "perturb" else self.direction
            self._maybe_fail(f"{name}+")
        self.updates, self.direction = updates, direction
        self._maybe_fail(f"{name}-")

    def _maybe_fail(self, name: str) -> None:
        if name in self.fails:
            self.fails.remove(name)
            raise RuntimeError(f"{name} fails")
