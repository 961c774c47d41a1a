"""What plans are made for: cards of the table, or this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from eoh_esopt.models.weights import RESTORE_MODES
from eoh_esopt.planning.cards import Card
from eoh_esopt.planning.here import Clock, Generation, MeasuredSpeeds, Moving, Slices
from eoh_esopt.planning.plan import Moved, scope_of
from eoh_esopt.planning.shapes import ModelShape
from eoh_esopt.planning.speeds import BY_ROW, CardSpeeds
from eoh_esopt.planning.workload import Workload
from operators.errors import UserError


@dataclass(frozen=True)
class CardMachine:
    """One kind of card, by its data sheet. See `eoh_esopt.planning.plan.Machine`."""

    card: Card
    shape: ModelShape
    moved: Moved
    element: int
    backends: tuple[str, ...] = ("vllm", "transformers")
    overlaps: bool = True
    measured: bool = False

    @property
    def name(self) -> str:
        """The card's."""
        return self.card.name

    @property
    def room(self) -> float:
        """The card's memory."""
        return self.card.memory

    def modes(self, backend: str) -> Collection[str]:
        """All in transformers; vLLM has the exact one."""
        return ("exact",) if backend == "vllm" else RESTORE_MODES

    def speeds(self, backend: str, restore: str, cards: int, *, directed: bool) -> CardSpeeds:
        """By the data sheet; transformers works on one card after the other where the model lies on several."""
        return CardSpeeds(
            card=self.card,
            shape=self.shape,
            backend=backend,
            mode=restore,
            moved=self.moved.weights,
            moved_tensors=self.moved.tensors,
            element=self.element,
            split=cards if backend == "vllm" else 1,
            by_row=BY_ROW[self.moved.scope.name] if directed else 1.0,
        )

    def cause(self, backend: str, cards: int, rows: int) -> str:
        """By the data sheet."""
        return self.speeds(backend, "exact", cards, directed=False).cause(rows)


@dataclass(frozen=True)
class HereMachine:
    """This machine, measured. See `eoh_esopt.planning.plan.Machine`.

    Attributes:
        name: for people.
        room: bytes of memory that are free.
        plain: rows without directions of their own.
        directed: rows with one each; None where the run has none.
        moving: of the weights in scope, by restore mode.
        reading: seconds of reading all weights once.
        overlaps: False on a CPU, which candidates run on too.
    """

    name: str
    room: float
    plain: Generation
    directed: Generation | None
    moving: dict[str, Moving]
    reading: float
    overlaps: bool
    backends: tuple[str, ...] = ("transformers",)
    measured: bool = True

    def modes(self, backend: str) -> Collection[str]:
        """Those that were timed."""
        return self.moving.keys()

    def speeds(self, backend: str, restore: str, cards: int, *, directed: bool) -> MeasuredSpeeds:
        """As measured."""
        generation = self.directed if directed and self.directed is not None else self.plain
        return MeasuredSpeeds(generation, self.moving[restore])

    def cause(self, backend: str, cards: int, rows: int) -> str:
        """From how long reading the weights takes."""
        generation = self.directed or self.plain
        step = MeasuredSpeeds(generation, next(iter(self.moving.values()))).step(rows, 0)
        return "reading the weights" if self.reading > step / 2 else "arithmetic and the library's own work"


def measure_here(
    device: str,
    shape: ModelShape,
    folder: Path | None,
    workload: Workload,
    dtype: torch.dtype,
    modes: Iterable[str],
    *,
    clock: Clock = time.perf_counter,
) -> HereMachine:
    """Time a few layers of the model on this machine.

    Args:
        device: cpu or cuda.
        shape: the model.
        folder: of its config.json; None where it is not here.
        workload: the run.
        dtype: of the live weights.
        modes: restore modes to time.
        clock: in seconds.

    Raises:
        UserError: there is no room for the layers.
    """
    scope = scope_of(workload)
    moved, room = Moved.of(shape, scope), _room(device)
    try:
        slices = Slices(shape, folder, dtype, device, clock)
        plain, directed = _contexts(workload, by_row=scope.per_row)
        return HereMachine(
            name=_name(device),
            room=room,
            plain=slices.generation(plain, None),
            directed=slices.generation(directed, scope) if directed else None,
            moving={mode: slices.moving(scope, mode, moved.weights) for mode in modes},
            reading=shape.read * dtype.itemsize / slices.bandwidth(),
            overlaps=device != "cpu",
        )
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise UserError(
            f"There is no room here for a few layers of {shape.name} ({error}). Name a card instead."
        ) from error


def _contexts(workload: Workload, *, by_row: bool) -> tuple[dict[int, int], dict[int, int]]:
    """Numbers of rows to time, with the tokens before a reply's middle: without directions of their own, and with."""
    config = workload.config
    plain, directed = set(), set()
    for operator, count in workload.batches():
        if not workload.learns(operator):
            plain.add(min(count, config.max_batch))
        elif by_row:
            directed.add(min(count, config.max_batch))
        else:
            plain.add(min(config.samples_per_direction, config.max_batch))
    found = [{min(rows), max(rows)} if rows else set() for rows in (plain, directed)]
    both = [{count: round(workload.prompt + workload.longest(count) / 2) for count in rows} for rows in found]
    return both[0], both[1]


def _name(device: str) -> str:
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    return f"this machine, {torch.get_num_threads()} threads"


def _room(device: str) -> float:
    """Bytes that are free."""
    if device == "cuda":
        return float(torch.cuda.get_device_properties(0).total_memory)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
