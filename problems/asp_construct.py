"""Symmetric admissible sets: the candidate gives each vector a priority, a greedy choice then builds the set.

An admissible set holds vectors over {0, 1, 2} of length n with w coordinates that are not zero, such that
- of any two of its vectors, each has a coordinate that is not zero where the other's is, and
- any three of its vectors have a coordinate where they hold {0, 1, 2}, {0, 0, 1} or {0, 0, 2}.

A symmetric one is closed under rotating each triple of coordinates by itself, so one vector stands for all its
rotations. Only the priorities leave the driver; the set is built and counted by `score`. The problem is that of
"Mathematical discoveries from program search with large language models" (Romera-Paredes et al., Nature, 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task
from problems.base import Decisions, Function, NotFinite, Problem, WrongShape, as_real
from problems.compiled import compiled
from problems.instances import Origin, Sets
from problems.references import key_of

WEIGHT_OF = {12: 7, 15: 10, 21: 15, 24: 17}
"""The number w of coordinates that are not zero, by the length n of the vectors."""

TRIPLES = np.array([(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 2, 1), (1, 1, 1), (2, 2, 2)], dtype=np.int8)
"""What a triple of coordinates may be; its rotations belong to it."""

SETS = Sets(
    problem="asp_construct",
    folder="asp_construct",
    draw=lambda generator, count, size: np.array([[size, WEIGHT_OF[size]]]),
    published={("train", 15): Origin(0, 1), **{("test", size): Origin(0, 1) for size in (12, 15, 21)}},
    default_size=15,
    default_count={"train": 1, "val": 1, "test": 1},
    seed=0,
)

_SIGNATURE = "def priority(el, n, w):"


def _seed(idea: str, *body: str) -> SeedHeuristic:
    lines = ["import numpy as np", "", "", _SIGNATURE, f'    """{idea}"""', *(f"    {line}" for line in body)]
    return SeedHeuristic(idea, "\n".join(lines) + "\n")


TASK = Task(
    name="asp_construct",
    description=(
        "Build a large set of vectors: the vector of highest priority is added again and again, and vectors that are "
        "too much like those in the set are dropped. Give a vector its priority."
    ),
    function="priority",
    arguments=("el", "n", "w"),
    signature=_SIGNATURE,
    docstring=(
        "el: tuple of n integers 0, 1 or 2, of which w are not zero.\n"
        "Coordinates come in triples el[3*k:3*k+3]: 000, 001, 002, 012, 021, 111 or 222; the set is closed under "
        "rotating a triple.\n"
        "n: length of el.\n"
        "w: number of coordinates that are not zero.\n"
        "Returns a finite number; among vectors with the same number the first in lexicographic order is added."
    ),
    imports="import numpy as np",
    ideas=(
        Idea("Look at the triples one by one.", "triples = [el[k:k + 3] for k in range(0, n, 3)]"),
        Idea("Count triples that are all equal.", "constant = sum(len(set(el[k:k + 3])) == 1 for k in range(0, n, 3))"),
        Idea(
            "Compare each triple with the next.",
            "pairs = [(el[k:k + 3], el[(k + 3) % n:][:3]) for k in range(0, n, 3)]",
        ),
        Idea("Weigh coordinates by where they are.", "where = sum(x * 0.9 ** (i // 3) for i, x in enumerate(el))"),
        Idea("Balance ones and twos.", "balance = abs(el.count(1) - el.count(2))"),
        Idea(
            "Count how many coordinates of each triple are not zero.",
            "filled = [3 - el[k:k + 3].count(0) for k in range(0, n, 3)]",
        ),
        Idea("Tell rising coordinates from falling ones.", "falls = sum(el[i] < el[i - 1] for i in range(n))"),
        Idea("Use a remainder of the sum of positions.", "rest = sum(i * x for i, x in enumerate(el)) % 3"),
    ),
    seeds=(
        _seed("Give all vectors the same priority.", "return 0.0"),
        _seed(
            "Prefer vectors in which each triple resembles the next.",
            "return sum(el[i] == el[(i + 3) % n] for i in range(n))",
        ),
        _seed(
            "Prefer vectors whose neighbouring coordinates differ.",
            "return sum(el[i] != el[i - 1] for i in range(n))",
        ),
    ),
)


@dataclass(frozen=True)
class Vectors:
    """One instance: all vectors that may be in the set, one for each family of rotations.

    Attributes:
        n: their length.
        w: how many of their coordinates are not zero.
        classes: which of `TRIPLES` each triple is; int8 of shape (number of vectors, n / 3), in lexicographic order.
    """

    n: int
    w: int
    classes: NDArray[np.int8]


class AspConstruct(Problem):
    """The problem for one length of vectors: a set of one instance.

    Args:
        split: "train", "val" or "test"; they do not differ.
        size: length n of the vectors, a key of `WEIGHT_OF`.
        n_instances: 1 if given.
        data: must be None; there is nothing to read.

    Raises:
        UserError: a value is out of range.
    """

    name = "asp_construct"
    measure = "set size"
    maximise = True
    sets = SETS

    def __init__(
        self, split: str = "train", size: int | None = None, n_instances: int | None = None, data: str | None = None
    ) -> None:
        if size is not None and size not in WEIGHT_OF:
            raise UserError(f"size of asp_construct must be one of {', '.join(map(str, WEIGHT_OF))}, not {size!r}.")
        if data is not None:
            raise UserError("asp_construct reads no data: its instance follows from the size. Leave the folder out.")
        self.instances = [_vectors(int(n), int(w)) for n, w in SETS.load(split, size, n_instances)]

    @property
    def task(self) -> Task:
        """What the model is told."""
        return TASK

    @property
    def n_calls(self) -> int:
        """Calls of a whole evaluation: one a vector."""
        return sum(len(instance.classes) for instance in self.instances)

    def key(self, instance: Vectors) -> str:
        """Of n and w."""
        return key_of(np.array([instance.n, instance.w]))

    @property
    def baselines(self) -> Mapping[str, Callable[[Any], float]]:
        """The greedy choice without priorities."""
        return {"lexicographic greedy": lambda instance: self.score(instance, np.zeros(len(instance.classes)))}

    def solve(self, instance: Vectors, function: Function) -> Decisions:
        """Ask the candidate's function for the priority of each vector.

        Returns:
            Priorities in lexicographic order of the vectors, float64 of shape (number of vectors,).

        Raises:
            BadReturn: the function returned no finite number.
        """
        n, w = instance.n, instance.w
        elements = TRIPLES[instance.classes].reshape(-1, n)
        priorities = np.empty(len(elements))
        for place, element in enumerate(elements):
            priorities[place] = as_real(function(tuple(element.tolist()), n, w), TASK.function)
        return priorities

    def score(self, instance: Vectors, decisions: Decisions) -> float:
        """Size of the symmetric set that a greedy choice by these priorities builds; the first of equals wins.

        Raises:
            WrongShape: not a float64 array of shape (number of vectors,).
            NotFinite: a priority is NaN or infinite.
        """
        count = len(instance.classes)
        if decisions.shape != (count,) or decisions.dtype != np.float64:
            raise WrongShape(
                f"the priorities are {decisions.dtype} of shape {decisions.shape}, expected float64 of shape ({count},)"
            )
        if not np.isfinite(decisions).all():
            raise NotFinite("some priorities are NaN or infinite")
        ordered = instance.classes[np.argsort(-decisions, kind="stable")]
        chosen = ordered[_greedy(ordered, _NESTED, _CLOSE)]
        return float(_ROTATIONS[chosen].prod(axis=1).sum())


def _vectors(n: int, w: int) -> Vectors:
    """All rows of classes of total weight w, extended triple by triple without what can no longer reach w."""
    each = np.arange(len(TRIPLES), dtype=np.int8)
    classes = np.zeros((1, 0), dtype=np.int8)
    for left in range(n // 3 - 1, -1, -1):
        longer = np.repeat(classes, len(TRIPLES), axis=0)
        classes = np.column_stack((longer, np.tile(each, len(classes))))
        weight = _WEIGHTS[classes].sum(axis=1)
        classes = classes[(weight <= w) & (weight + 3 * left >= w)]
    classes.flags.writeable = False
    return Vectors(n, w, classes)


def _masks(allowed: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A last axis of one truth value a class as the bits of an integer."""
    bits = allowed.astype(np.uint64) << np.arange(len(TRIPLES), dtype=np.uint64)
    masks: NDArray[np.uint64] = bits.sum(axis=-1, dtype=np.uint64)
    return masks


def _close_triples() -> NDArray[np.bool_]:
    """For any three classes, whether some rotations of them leave no coordinate that tells three vectors apart."""
    telling = np.zeros((3, 3, 3), dtype=bool)
    for held in np.ndindex(3, 3, 3):
        telling[held] = sorted(held) in ([0, 1, 2], [0, 0, 1], [0, 0, 2])
    close = np.zeros((len(TRIPLES),) * 3, dtype=bool)
    for i, j in np.ndindex(3, 3):
        second, third = np.roll(TRIPLES, i, axis=1), np.roll(TRIPLES, j, axis=1)
        close |= ~telling[TRIPLES[:, None, None], second[None, :, None], third[None, None, :]].any(axis=-1)
    return close


_WEIGHTS = (TRIPLES != 0).sum(axis=1)
_ROTATIONS = np.where((TRIPLES[:, :1] == TRIPLES).all(axis=1), 1, 3)
_CLOSE = _masks(_close_triples())
_NESTED = _masks(np.stack((_WEIGHTS[:, None] <= _WEIGHTS, _WEIGHTS[:, None] >= _WEIGHTS)))
_BITS = len(TRIPLES)


@compiled
def _greedy(classes: Any, nested: Any, close: Any) -> Any:
    """Go through vectors in the order of their rows and keep each that is admissible beside those kept before.

    A vector is held as one bit a triple, at the place of its class. What two kept vectors rule out are the vectors
    inside one mask (each triple is of a class that is close to those of the two); so are the vectors whose support one
    kept vector's contains, and those whose support contains it. The newest masks are tried first, since neighbours in
    the order are alike.

    Args:
        classes: integers of shape (number of vectors, number of triples).
        nested: of `_NESTED`'s form: the classes of at least, and of at most, a class's weight.
        close: of `_CLOSE`'s form: the classes close to two others.

    Returns:
        Rows that are kept, int64.
    """
    count, groups = classes.shape
    kept = np.empty(count, np.int64)
    outside = np.empty(1024, np.uint64)
    n_kept = n_masks = 0
    for row in range(count):
        vector = np.uint64(0)
        for k in range(groups):
            vector |= np.uint64(1) << np.uint64(_BITS * k + classes[row, k])
        mask = n_masks - 1
        while mask >= 0 and vector & outside[mask] != 0:
            mask -= 1
        if mask >= 0:
            continue
        if n_masks + n_kept + 2 > len(outside):
            outside = np.append(outside, np.empty(len(outside) + n_kept, np.uint64))
        for other in range(-2, n_kept):
            ruled_out = np.uint64(0)
            for k in range(groups):
                own = classes[row, k]
                part = nested[other, own] if other < 0 else close[own, classes[kept[other], k]]
                ruled_out |= part << np.uint64(_BITS * k)
            outside[n_masks] = ~ruled_out
            n_masks += 1
        kept[n_kept] = row
        n_kept += 1
    return kept[:n_kept]
