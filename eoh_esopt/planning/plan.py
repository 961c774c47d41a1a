"""A plan: which precision modes a run has room for, on how many replicas, how long it takes, and what it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from eoh_esopt.models.scopes import Scope, get_scope
from eoh_esopt.models.weights import RESTORE_MODES, check_restore, drifts
from eoh_esopt.planning.memory import USABLE, Memory, memory
from eoh_esopt.planning.shapes import ModelShape
from eoh_esopt.planning.speeds import Speeds
from eoh_esopt.planning.workload import Seconds, Team, Workload, batch_seconds
from operators.errors import UserError

_SPLITS = (1, 2, 4, 8)
"""Cards that one replica can be spread over."""


@dataclass(frozen=True)
class Moved:
    """The weights that directions move.

    Attributes:
        scope: which they are.
        weights: their number.
        tensors: the number of tensors that hold them.
    """

    scope: Scope
    weights: int
    tensors: int

    @classmethod
    def of(cls, shape: ModelShape, scope: Scope) -> Moved:
        """Those of a scope: all, the gains of the norm layers, or the matrices of the layers for low-rank noise."""
        embeddings = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
        if scope.rank is not None:
            return cls(scope, shape.parameters - embeddings - shape.gains, shape.tensors - 2 * shape.layers - 2)
        if scope.per_row:
            return cls(scope, shape.gains, 2 * shape.layers + 1)
        return cls(scope, shape.parameters, shape.tensors)


class Machine(Protocol):
    """Something that a plan is made for."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def measured(self) -> bool:
        """Whether the speeds were measured, not taken from a data sheet."""
        ...

    @property
    def room(self) -> float:
        """Bytes of memory of one card."""
        ...

    @property
    def backends(self) -> tuple[str, ...]:
        """What can run a model there."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether candidates run on processors that the model does not need."""
        ...

    def modes(self, backend: str) -> Collection[str]:
        """The restore modes that there are."""
        ...

    def speeds(self, backend: str, restore: str, cards: int, *, directed: bool) -> Speeds:
        """Of rows that each have a direction of their own (`directed`), or of others, and of moving the weights."""
        ...

    def cause(self, backend: str, cards: int, rows: int) -> str:
        """What a token of a batch mostly waits for."""
        ...


@dataclass(frozen=True)
class Way:
    """One way to run it.

    Attributes:
        backend: what runs the model.
        restore: the restore mode.
        cards: of one replica.
        replicas: how many there are; 0 where there is no room for one.
        memory: of one replica.
        room: bytes that its cards have for it.
        batches: seconds of a whole batch, by operator.
        total: of the whole run.
        cause: what a token mostly waits for, in batches that learn, or in all where none does.
    """

    backend: str
    restore: str
    cards: int
    replicas: int
    memory: Memory
    room: float
    batches: dict[str, Seconds]
    total: Seconds
    cause: str

    @property
    def fits(self) -> bool:
        """Whether there is room for it."""
        return self.replicas > 0


@dataclass(frozen=True)
class Plan:
    """All ways on one kind of card.

    Attributes:
        where: the card, or this machine.
        measured: whether the speeds were measured, not taken from a data sheet.
        gpus: how many there are.
        shape: the model.
        ways: in the order they were looked at.
    """

    where: str
    measured: bool
    gpus: int
    shape: ModelShape
    ways: tuple[Way, ...]

    @property
    def best(self) -> Way | None:
        """The fastest exact way that there is room for; if there is none, the fastest that drifts; else None."""
        fitting = [way for way in self.ways if way.fits]
        exact = [way for way in fitting if not drifts(way.restore)]
        return min(exact or fitting, key=lambda way: way.total.total, default=None)


def restore_modes(wanted: str, scope: Scope, dtype: str) -> tuple[str, ...]:
    """The restore modes to look at.

    Args:
        wanted: one of them, or all.
        scope: of the directions.
        dtype: of the live weights.

    Raises:
        UserError: it is none, or the scope or the dtype does not have it.
    """
    if wanted != "all":
        check_restore(wanted, scope)
        if wanted == "residual" and dtype != "bfloat16":
            raise UserError(f"Restore mode 'residual' is for bfloat16 weights, not {dtype}: use 'exact'.")
        return (wanted,)
    return tuple(mode for mode in RESTORE_MODES if _has(mode, scope, dtype))


def make_plan(
    machine: Machine, gpus: int, shape: ModelShape, workload: Workload, element: int, modes: Iterable[str]
) -> Plan:
    """Look at every backend and restore mode.

    Args:
        machine: what it runs on.
        gpus: cards of it.
        shape: the model.
        workload: the run.
        element: bytes of a live weight.
        modes: restore modes; those that a backend does not have are left out.
    """
    ways = [
        _way(machine, gpus, shape, workload, element, backend, mode)
        for backend in machine.backends
        for mode in modes
        if mode in machine.modes(backend)
    ]
    return Plan(machine.name, machine.measured, gpus, shape, tuple(ways))


def for_vllm(machine: Machine, gpus: int, shape: ModelShape, workload: Workload, element: int) -> Plan | None:
    """The plan with as many more cards as vLLM needs; None where it has room already, or never will."""
    for count in (count for count in _SPLITS if count > gpus):
        plan = make_plan(machine, count, shape, workload, element, ("exact",))
        if any(way.backend == "vllm" and way.fits for way in plan.ways):
            return plan
    return None


def _way(
    machine: Machine, gpus: int, shape: ModelShape, workload: Workload, element: int, backend: str, mode: str
) -> Way:
    """The way with the fewest cards a replica that there is room on, or else with all there are."""
    splits = [cards for cards in _SPLITS if cards <= gpus]
    for cards in splits:
        replicas = gpus // cards if backend == "vllm" else 1  # transformers has no servers to spread directions over
        needed = _needed(shape, workload, element, backend, mode, cards, replicas)
        room = USABLE[backend] * machine.room * cards
        if needed.device <= room or cards == splits[-1]:
            break
    fits = needed.device <= room
    in_place = not _by_row(workload)
    team = Team(
        plain=machine.speeds(backend, mode, cards, directed=False),
        learning=machine.speeds(backend, mode, cards, directed=not in_place),
        in_place=in_place,
        replicas=replicas,
        overlaps=machine.overlaps and replicas == 1,  # several servers are given whole batches
    )
    found = [(operator, count) for operator, count in workload.batches()]
    seconds = {batch: batch_seconds(workload, *batch, team) for batch in set(found)}
    largest = {operator: max(count for other, count in found if other == operator) for operator, _ in found}
    learns = in_place and workload.config.learns
    rows = workload.config.samples_per_direction if learns else _rows(workload, backend, replicas)
    return Way(
        backend=backend,
        restore=mode,
        cards=cards,
        replicas=replicas if fits else 0,
        memory=needed,
        room=room,
        batches={operator: seconds[operator, count] for operator, count in largest.items()},
        total=sum((seconds[batch] for batch in found), Seconds()),
        cause=machine.cause(backend, cards, rows),
    )


def _needed(
    shape: ModelShape, workload: Workload, element: int, backend: str, mode: str, cards: int, replicas: int
) -> Memory:
    return memory(
        shape,
        backend=backend,
        restore=mode,
        moved=Moved.of(shape, scope_of(workload)).weights,
        element=element,
        rows=_rows(workload, backend, replicas),
        prompt=workload.prompt,
        length=workload.prompt + workload.config.sampling.max_new_tokens,
        cards=cards,
    )


def scope_of(workload: Workload) -> Scope:
    """The scope of the run's directions."""
    return get_scope(workload.config.scope, workload.config.lowrank)


def _by_row(workload: Workload) -> bool:
    """Whether every row of a batch has its own direction: of gains and of low-rank noise."""
    return scope_of(workload).per_row


def _rows(workload: Workload, backend: str, replicas: int) -> int:
    """Most rows that one replica writes at once."""
    in_place = not _by_row(workload)
    most = max(
        workload.config.samples_per_direction if in_place and workload.learns(operator) else -(-count // replicas)
        for operator, count in workload.batches()
    )
    return min(most, workload.config.max_batch)


def _has(mode: str, scope: Scope, dtype: str) -> bool:
    try:
        restore_modes(mode, scope, dtype)
    except UserError:
        return False
    return True
