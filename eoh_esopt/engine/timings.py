"""Where the wall time of a run went. Unlike the ledger's counters, times differ from one run to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

from eoh_esopt.models.stopwatch import stopwatch_of


@dataclass(frozen=True)
class Timings:
    """Seconds of wall time over all sittings of a run. The parts do not overlap, `sandbox` apart.

    What a resumed run does again, such as earlier updates, counts again; a batch that a kill cut short does not count.

    Attributes:
        generate: writing replies, `perturb` and `restore` left out where they are known.
        perturb: moving the weights to directions; None where the backend does not tell it from writing.
        restore: moving them back; None likewise.
        update: moving the true weights by updates.
        evaluate: waiting for evaluations after a batch was written. Most run while its last replies are still being
            written, and that is no waiting.
        sandbox: work of the sandbox's processes, summed over them, so it may exceed the wall time; None where the
            evaluator does not count it.
    """

    generate: float = 0.0
    perturb: float | None = None
    restore: float | None = None
    update: float = 0.0
    evaluate: float = 0.0
    sandbox: float | None = None

    @property
    def model(self) -> float:
        """Seconds that the model worked: writing, and moving its weights."""
        return self.generate + self.moves

    @property
    def moves(self) -> float:
        """Seconds that learning costs: perturb, restore and update, as far as they are known."""
        return (self.perturb or 0.0) + (self.restore or 0.0) + self.update

    def as_dict(self) -> dict[str, float | None]:
        """The seconds by part, to the millisecond."""
        return {name: None if value is None else round(value, 3) for name, value in asdict(self).items()}

    @classmethod
    def of(cls, seconds: Mapping[str, Any]) -> Timings:
        """From seconds by part; parts that are unknown here are left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in seconds.items() if name in known})


@runtime_checkable
class CountsSeconds(Protocol):
    """An evaluator that counts how long its processes worked."""

    @property
    def busy_seconds(self) -> float:
        """Seconds of all processes together so far."""
        ...


class Timekeeper:
    """Adds up the timings of one sitting on those before it.

    Args:
        model: writes and is moved.
        evaluator: runs candidates.
        before: timings of earlier sittings.
        clock: seconds, from any beginning.
    """

    def __init__(
        self, model: object, evaluator: object, before: Timings, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._model = model
        self._evaluator = evaluator
        self._before = before
        self._clock = clock
        self._so_far = before
        if stopwatch_of(model) is not None:
            self._so_far = replace(before, perturb=before.perturb or 0.0, restore=before.restore or 0.0)
        self._busy_before = _busy(evaluator)

    @property
    def timings(self) -> Timings:
        """All sittings so far."""
        busy = _busy(self._evaluator)
        if busy is None or self._busy_before is None:
            return self._so_far
        return replace(self._so_far, sandbox=(self._before.sandbox or 0.0) + busy - self._busy_before)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Time a block in which the model writes, under directions or not."""
        before = stopwatch_of(self._model)
        perturb, restore = (0.0, 0.0) if before is None else (before.perturb, before.restore)
        with self._timed("generate"):
            yield
        after = stopwatch_of(self._model)
        if after is not None:
            perturb, restore = after.perturb - perturb, after.restore - restore
            self._add("perturb", perturb)
            self._add("restore", restore)
            self._add("generate", -perturb - restore)

    def updating(self) -> AbstractContextManager[None]:
        """Time a block in which the true weights move."""
        return self._timed("update")

    def waiting(self) -> AbstractContextManager[None]:
        """Time a block in which the search waits for evaluations."""
        return self._timed("evaluate")

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = self._clock()
        yield
        self._add(part, self._clock() - began)

    def _add(self, part: str, seconds: float) -> None:
        self._so_far = replace(self._so_far, **{part: (getattr(self._so_far, part) or 0.0) + seconds})


def _busy(evaluator: object) -> float | None:
    return evaluator.busy_seconds if isinstance(evaluator, CountsSeconds) else None
