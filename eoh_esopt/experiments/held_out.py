"""What the best heuristics of runs are worth on instances that no search has seen, in the sandbox.

What was found is kept beside the run, in `held_out.json`, under the hash of the heuristic and of the instances:

    [{"heuristic": sha256 of the code, "instances": sha256 of the instances, "set": "test50", "timeout": seconds,
      "values": [value of each instance, as people read it]}, ...]

Only complete scores are kept: a heuristic that failed may have met a busy machine, and is tried again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import write_atomically
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.scores import Scores
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.sets import named_sets
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome
from problems.base import Problem
from problems.references import ceiling_of, references

FILE = "held_out.json"

Outcomes = Iterable[tuple[int, Outcome]]
Follow = Callable[[str, int, Outcomes], Outcomes]
"""(what is scored, number of instances, outcomes as they come) -> the same outcomes; for progress."""


@dataclass(frozen=True)
class HeldOut:
    """What the best heuristics of one task are worth on one set of instances.

    Attributes:
        problem: name of the task.
        set_name: of the instances, such as "test50".
        measure: what the values are.
        maximise: whether larger is better.
        ceiling: name of the value that nothing is known to beat; None where there is none.
        ceiling_value: that value.
        values: mean over the instances, as people read it, by the run's folder; none for runs whose heuristic failed.
        failures: by the run's folder, how its heuristic failed.
    """

    problem: str
    set_name: str
    measure: str
    maximise: bool
    ceiling: str | None
    ceiling_value: float | None
    values: Mapping[Path, float]
    failures: Mapping[Path, str]


@dataclass(frozen=True)
class Selection:
    """Which instances, and how to evaluate on them.

    Attributes:
        split: train, val or test; None for test where the problem has splits.
        sizes: of the instances; none for all published ones.
        instances: the first so many of each set; None for the problem's default.
        data: folder of published files; None for what each run used.
        timeout: seconds for each instance.
        workers: of the sandbox.
        isolation: best, required or none.
    """

    split: str | None = None
    sizes: tuple[int, ...] = ()
    instances: int | None = None
    data: str | None = None
    timeout: float = 60.0
    workers: int = 1
    isolation: str = "best"


def _unfollowed(_what: str, _count: int, outcomes: Outcomes) -> Outcomes:
    return outcomes


def score_held_out(
    runs: Sequence[RunRecord], selection: Selection, follow: Follow = _unfollowed
) -> tuple[HeldOut, ...]:
    """Score the best heuristic of each run; each was selected on the training instances alone.

    Args:
        runs: of any tasks.
        selection: the instances.
        follow: sees the outcomes pass.

    Raises:
        UserError: there are no such instances, the sandbox does not start, or a heuristic's file is gone.
    """
    found = []
    for problem in sorted({run.config.problem for run in runs}):
        mine = [run for run in runs if run.config.problem == problem]
        data = selection.data or mine[0].config.data
        for set_name, spec in named_sets(problem, selection.split, selection.sizes, selection.instances, data):
            found.append(_on_set(problem, set_name, spec, mine, selection, follow))
    return tuple(found)


def _on_set(
    problem: str, set_name: str, spec: ProblemSpec, runs: Sequence[RunRecord], selection: Selection, follow: Follow
) -> HeldOut:
    loaded = spec.build()
    known = [_Kept(run, loaded, spec, set_name, selection) for run in runs]
    values: dict[Path, float] = {}
    failures: dict[Path, str] = {}
    limits = Limits(wall_s=selection.timeout)
    missing = [one for one in known if one.mean is None]
    if missing:
        with Evaluator(spec, workers=selection.workers, limits=limits, isolation=selection.isolation) as evaluator:
            for one in missing:
                what = f"{set_name}, {one.run.folder.name}"
                outcomes = dict(follow(what, len(loaded.instances), evaluator.evaluate_each(one.code)))
                one.enter(Scores.of(loaded, set_name, outcomes))
    for one in known:
        if one.mean is None:
            failures[one.run.folder] = one.failure
        else:
            values[one.run.folder] = one.mean
    ceiling = ceiling_of(references(loaded))
    mean = None if ceiling is None else ceiling.mean
    name = None if ceiling is None or mean is None else ceiling.name
    return HeldOut(problem, set_name, loaded.measure, loaded.maximise, name, mean, values, failures)


class _Kept:
    """The score of one run's best heuristic on one set, as its folder keeps it."""

    def __init__(
        self, run: RunRecord, problem: Problem, spec: ProblemSpec, set_name: str, selection: Selection
    ) -> None:
        self.run, self.code, self.failure = run, run.best_code, ""
        self._path = run.folder / FILE
        self._entry = {
            "heuristic": hashlib.sha256(self.code.encode()).hexdigest(),
            "instances": _hash(problem, spec),
            "set": set_name,
        }
        self.mean = next((_mean(one["values"]) for one in self._stored() if self._entry.items() <= one.items()), None)

    def enter(self, scores: Scores) -> None:
        """Keep what was found."""
        self.mean = scores.mean
        if scores.complete:
            kept = [*self._stored(), {**self._entry, "values": scores.values}]
            write_atomically(self._path, json.dumps(kept, indent=1) + "\n")
            return
        failed = [one for one in scores.outcomes if not one.valid]
        kind, detail = failed[0].status.value, failed[0].detail
        told = f"{kind}, {detail}" if detail else kind
        where = f"{len(failed)} of {len(scores.outcomes)} instances of {scores.set_name}"
        self.failure = f"its best heuristic fails on {where} ({told})"

    def _stored(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        try:
            found: list[dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))
            if not all(isinstance(one["values"], list) and _mean(one["values"]) is not None for one in found):
                raise ValueError("an entry without values")
            return found
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{self._path} is damaged: {error!r}. Remove it; it will be made again.") from error


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _hash(problem: Problem, spec: ProblemSpec) -> str:
    """Of the instances: by their own keys where the problem gives them, else by how they are made."""
    keys = [problem.key(instance) for instance in problem.instances]
    text = json.dumps(keys) if all(keys) else f"{spec.to_json()}\n{_source(str(spec.arguments['name']))}"
    return hashlib.sha256(text.encode()).hexdigest()


def _source(name: str) -> str:
    """The file of a user's own problem."""
    path = Path(name.partition(":")[0])
    return path.read_text(encoding="utf-8") if path.is_file() else name
