"""The weights of a running vLLM server, as its control moves them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from eoh_esopt.models.vllm.assemble import Assembly
from operators.errors import UserError

_ATTEMPTS, _PAUSE_S = 100, 0.05
"""How often the prefix cache is asked to empty: replies that were broken off hold it a moment longer."""


class ServerEngine:
    """An `Engine` of the control, and a `Queue` of its batches, over vLLM's asynchronous engine.

    Args:
        llm: vLLM's engine client, whose workers have `EsServerExtension`.
        folder: the checkpoint it serves.
    """

    def __init__(self, llm: Any, folder: Path) -> None:
        self._llm, self._folder = llm, folder
        self._assembly: Assembly | None = None

    async def open(self, scope: str, restore: str) -> dict[str, Any]:
        """See `Engine`."""
        self._assembly = None
        facts = await self._all("es_begin", str(self._folder), scope, restore)
        errors = [one["error"] for one in facts if "error" in one]
        if errors:
            raise UserError(errors[0])
        self._assembly = await asyncio.to_thread(Assembly, self._folder, facts)
        return {
            "parameters": self._assembly.parameters,
            "scope_elements": self._assembly.scope_elements,
            "extra_bytes": sum(one["extra_bytes"] for one in facts),
            "dtype": facts[0]["dtype"],
            "device": facts[0]["device"].partition(":")[0],
        }

    async def reset(self) -> None:
        """See `Engine`."""
        await self._all("es_reset")

    async def perturb(self, seed: int, sigma: float) -> None:
        """See `Engine`."""
        await self._all("es_perturb", seed, sigma)

    async def restore(self) -> None:
        """See `Engine`."""
        await self._all("es_restore")

    async def update(self, update: Mapping[str, Any]) -> None:
        """See `Engine`."""
        await self._all("es_update", dict(update))

    async def forget(self) -> None:
        """See `Engine`."""
        for _ in range(_ATTEMPTS):
            if await self._llm.reset_prefix_cache():
                break
            await asyncio.sleep(_PAUSE_S)
        else:
            raise RuntimeError("vLLM's prefix cache cannot be emptied: something still uses it")
        await self._llm.reset_mm_cache()
        await self._llm.reset_encoder_cache()

    async def checksum(self) -> str:
        """See `Engine`."""
        async with self._dumped() as (assembly, dumped):
            return await asyncio.to_thread(assembly.checksum, dumped)

    async def export(self, folder: Path, *, float32: bool) -> None:
        """See `Engine`."""
        async with self._dumped() as (assembly, dumped):
            await asyncio.to_thread(assembly.save, dumped, folder, float32=float32)

    async def hold(self) -> None:
        """See `Queue`. The prefix cache is emptied, unless something still uses it: see `VllmModel`."""
        await self._llm.pause_generation(mode="keep", clear_cache=False)
        await self._llm.reset_prefix_cache()

    async def begin(self) -> None:
        """See `Queue`."""
        await self._llm.resume_generation()

    def waiting(self, batch: str) -> int:
        """See `Queue`. vLLM's names for requests hold ours."""
        return sum(batch in name for name in self._llm.output_processor.request_states)

    @asynccontextmanager
    async def _dumped(self) -> AsyncIterator[tuple[Assembly, Path]]:
        assert self._assembly is not None
        with tempfile.TemporaryDirectory(prefix="eoh-esopt-weights-") as name:
            await asyncio.to_thread(self._assembly.prepare, Path(name))
            await self._all("es_dump", name)
            yield self._assembly, Path(name)

    async def _all(self, method: str, *arguments: Any) -> list[Any]:
        """What every worker answers."""
        answers: list[Any] = await self._llm.collective_rpc(method, args=arguments)
        return answers
