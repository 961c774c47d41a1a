"""Borrowed names of modules and global state, given back however a block ends."""

from __future__ import annotations

import multiprocessing
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np


@contextmanager
def swapped(module: ModuleType, **values: object) -> Iterator[None]:
    """Give names of a module other values while the block runs. The names must exist."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@contextmanager
def shadowed(thing: Any, **values: object) -> Iterator[None]:
    """Give one object attributes of its own while the block runs, over those of its class or its own ones."""
    own, before = vars(thing), dict(vars(thing))
    own.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                own[name] = before[name]
            else:
                del own[name]


@contextmanager
def untouched() -> Iterator[None]:
    """Bring global random states, warning filters and the start method of processes back to what they were."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002 - the host's, not ours
    start_method = multiprocessing.get_start_method(allow_none=True)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        if multiprocessing.get_start_method(allow_none=True) != start_method:
            multiprocessing.set_start_method(start_method, force=True)
