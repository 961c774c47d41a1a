"""What to hold an objective against: classical baselines, and the optimum or the best that is known.

Values are stored instance by instance in `problems/data`, under a hash of the instance's own numbers, so they are found
for any part of a set and for published files alike. `scripts/ceilings.py` computes them anew. A file there holds

    {"ceiling": {"name": what a ceiling is that is not proven, "by": how it was obtained},
     "sets": what the published sets amount to, for readers,
     "instances": {key: {"ceiling": value, "proven": true if it is the optimum, baseline: value, ...}}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problems.base import Problem

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Reference:
    """A known value of each instance.

    Attributes:
        name: of the method, or of what the value is: "optimum", "best known", "lower bound".
        values: one an instance, as people read it (not negated); None where it is not known.
        by: how it was obtained, empty for a baseline that is computed on the spot.
        ceiling: whether nothing better is known (or possible).
    """

    name: str
    values: tuple[float | None, ...]
    by: str = ""
    ceiling: bool = False

    @property
    def mean(self) -> float | None:
        """Mean over all instances; None when a value is missing."""
        known = [value for value in self.values if value is not None]
        return float(np.mean(known)) if known and len(known) == len(self.values) else None


def key_of(raw: NDArray[Any]) -> str:
    """The key of an instance: 16 hexadecimal digits from its numbers, whatever their type and byte order."""
    return hashlib.sha256(np.ascontiguousarray(raw, dtype="<f8").tobytes()).hexdigest()[:16]


def references(problem: Problem) -> tuple[Reference, ...]:
    """The baselines of a problem and, last, its ceiling if one is stored; nothing slow is computed."""
    keys = [problem.key(instance) for instance in problem.instances]
    stored = _stored(problem.name)
    found = [_baseline(problem, name, keys, stored) for name in problem.baselines]
    if stored is not None:
        values = tuple(_value(stored, "ceiling", key) for key in keys)
        if any(value is not None for value in values):
            proven = all(stored["instances"].get(key, {}).get("proven", False) for key in keys)
            name = "optimum" if proven else stored["ceiling"]["name"]
            found.append(Reference(name, values, stored["ceiling"]["by"], ceiling=True))
    return tuple(found)


def ceiling_of(found: Sequence[Reference]) -> Reference | None:
    """The reference that nothing is known to beat."""
    return next((one for one in found if one.ceiling), None)


def gap(value: float, ceiling: float, maximise: bool) -> float:
    """How far a value is from the ceiling, as a fraction of the ceiling; positive when it is worse."""
    return (ceiling - value if maximise else value - ceiling) / abs(ceiling)


def _baseline(problem: Problem, name: str, keys: Sequence[str], stored: Mapping[str, Any] | None) -> Reference:
    compute = problem.baselines[name]
    kept = [_value(stored, name, key) if stored else None for key in keys]
    values = [
        float(compute(instance)) if value is None else value
        for instance, value in zip(problem.instances, kept, strict=True)
    ]
    return Reference(name, tuple(values))


def _value(stored: Mapping[str, Any], name: str, key: str) -> float | None:
    value = stored["instances"].get(key, {}).get(name)
    return None if value is None else float(value)


@cache
def _stored(problem: str) -> dict[str, Any] | None:
    path = DATA / f"{problem}.json"
    if not path.is_file():
        return None
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded
