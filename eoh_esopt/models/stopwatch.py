"""How long a model takes to move its weights to a direction and back, apart from the writing in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass
class Stopwatch:
    """Seconds of wall time since the model was loaded.

    Attributes:
        perturb: moving the weights to directions, or making the noise that rows carry.
        restore: moving them back.
        wait: returns when the device has done what it was told; else its work would count for what comes next.
    """

    perturb: float = 0.0
    restore: float = 0.0
    wait: Callable[[], object] = lambda: None

    @contextmanager
    def perturbing(self) -> Iterator[None]:
        """Time the block as `perturb`."""
        began = time.perf_counter()
        try:
            yield
            self.wait()
        finally:
            self.perturb += time.perf_counter() - began

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Time the block as `restore`."""
        began = time.perf_counter()
        try:
            yield
            self.wait()
        finally:
            self.restore += time.perf_counter() - began

    @contextmanager
    def around(self, moved: AbstractContextManager[None]) -> Iterator[None]:
        """The block inside `moved`, whose beginning is a perturbation and whose end a restore."""
        with ExitStack() as stack:
            with self.perturbing():
                stack.enter_context(moved)
            try:
                yield
            finally:
                with self.restoring():
                    stack.close()


@runtime_checkable
class Timed(Protocol):
    """A model that can tell the parts of its time."""

    @property
    def stopwatch(self) -> Stopwatch | None:
        """The times so far; None where what the model wraps cannot tell them."""
        ...


def stopwatch_of(model: object) -> Stopwatch | None:
    """The times of a model; None where perturbations are not told apart from the writing."""
    return model.stopwatch if isinstance(model, Timed) else None
