"""Replicas: where the cells of a sweep run, one cell at a time on each.

A replica is a device of this machine, or servers or an endpoint that are there already. On a CPU the replicas are as
many processes as are asked for, which share out its cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eoh_esopt.experiments.settings_files import Place, check_keys
from operators.errors import UserError

_THREADS = "OMP_NUM_THREADS"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_KINDS: Mapping[str, str | None] = {"device": None, "servers": "served", "base_url": "openai"}
"""What a replica may be, and the backend that goes with it."""

THREADS_PER_CELL = 4
"""On a CPU where nobody says how many cells run at once: a small model gains little from more."""


@dataclass(frozen=True)
class Replica:
    """One place for one cell at a time.

    Attributes:
        name: for people.
        settings: of the runs on it.
        environment: of the processes on it.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def read_replicas(value: Any, place: Place) -> tuple[Replica, ...]:
    """The replicas that a sweep's file lists.

    Raises:
        UserError: one of them is none, or they are of different kinds: then cells could not go on on another one.
    """
    if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise UserError(f'{place}: replicas must be a list such as [{{ device = "cuda:0" }}], not {value!r}.')
    kinds: set[str] = set()
    for one in value:
        check_keys(one, _KINDS, place.inside("replicas"))
        kinds.update(one)
        if len(one) != 1 or not isinstance(next(iter(one.values())), str):
            raise UserError(f"{place}: a replica is one of {', '.join(_KINDS)}, with a text, not {one!r}.")
    if len(kinds) > 1:
        raise UserError(f"{place}: replicas are of one kind, not {' and '.join(sorted(kinds))}.")
    return tuple(_replica(kind, where, place) for one in value for kind, where in one.items())


def _replica(kind: str, where: str, place: Place) -> Replica:
    if kind != "device":
        return Replica(where, {"backend": _KINDS[kind], kind: where})
    if where == "cpu":
        return Replica(where, environment={_VISIBLE: ""})
    name, _, listed = where.partition(":")
    numbers = listed.split(",")
    if name != "cuda" or not all(number.isdecimal() for number in numbers):
        raise UserError(
            f'{place}: unknown device {where!r}. Give "cpu", "cuda:0" or, for layers split over two, "cuda:0,1".'
        )
    return Replica(where, environment={_VISIBLE: ",".join(_visible(int(number), place) for number in numbers)})


def _visible(number: int, place: Place) -> str:
    """The machine's own name of the GPU that programs see under this number."""
    among = os.environ.get(_VISIBLE)
    if among is None:
        return str(number)
    names = [name for name in among.split(",") if name]
    if number >= len(names):
        raise UserError(f"{place}: there is no cuda:{number}, as {_VISIBLE} is {among!r}.")
    return names[number]


def places(listed: tuple[Replica, ...], workers: int | None, place: Place) -> tuple[Replica, ...]:
    """Where cells run at once: what was listed, or the GPUs there are, or the CPU shared out.

    Args:
        listed: the replicas of the sweep's file.
        workers: how many cells to run at once; None for one on each replica, or what suits the CPU.
        place: the sweep's file.

    Raises:
        UserError: there are fewer replicas than that.
    """
    cores = available_cores()
    found = listed or tuple(_replica("device", f"cuda:{number}", place) for number in range(_gpus()))
    if not found:
        workers = workers or max(1, cores // THREADS_PER_CELL)
        found = tuple(Replica(f"cpu {number + 1}") for number in range(workers))
    if workers is not None and workers > len(found):
        raise UserError(f"{workers} cells cannot run at once on {len(found)} replicas. List more replicas in {place}.")
    return found[:workers]


def threads_each(count: int) -> int:
    """Threads of each of so many cells that run at once; what the user set in OMP_NUM_THREADS goes before."""
    given = os.environ.get(_THREADS, "")
    return int(given) if given.isdecimal() and int(given) else max(1, available_cores() // count)


def with_threads(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """The environment of a cell's process: this process's, the replica's, and its share of the cores."""
    return {**os.environ, **environment, _THREADS: str(threads)}


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpus() -> int:
    import torch  # slow to load, and not needed where replicas are listed

    return torch.cuda.device_count()
