"""Which runs may be put side by side, and how: by task, budget and arm. What may not is refused by name.

An arm is the runs that differ in nothing but the seed. Settings that say where and how fast the work was done make no
arm, nor do those of learning where the method does not learn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from eoh_esopt.engine.config import MOVABLE, RunConfig
from eoh_esopt.experiments.comparable import check_runs
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError

BUDGETS = ("candidates", "model_calls", "evaluations", "tokens")
"""Counters that a comparison may hold equal."""

TOLERANCE = 0.01
"""How far apart, as a fraction of the least, the spent budgets of a cell may lie."""

_PLACE = frozenset({"problem", "seed", "budget"})
_CHECKED = frozenset({"model", "data", "init_from"})
_MACHINE = MOVABLE | {"cassette", "max_batch", "tensor_parallel", "isolation"}
_LEARNING = frozenset(
    {"sigma", "sigma_final", "alpha", "reward", "scope", "restore", "noise", "rank", "shuffle_rewards", "shaping"}
    | {"antithetic", "momentum", "adaptive_sigma", "sigma_schedule", "ablation"}
)
_DEFAULTS = {one.name: one.default for one in (*fields(RunConfig), *fields(Sampling))}
_WORDS = {"shuffle_rewards": "shuffled", "ablation": ""}

_COUNTERS = ("start_candidates", "candidates", "model_calls", "prompt_tokens", "new_tokens", "tokens", "evaluations")
_FOUND = ("parsed", "duplicates", "valid", "new", "updates", "skips")

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class ArmRuns:
    """The runs of one arm in one cell.

    Attributes:
        name: method, and what tells it from the other arms of that method in its cell.
        method: the method.
        settings: what makes the arm.
        runs: by seed.
    """

    name: str
    method: str
    settings: Settings
    runs: tuple[RunRecord, ...]

    def spent(self, counter: str) -> float:
        """Mean over the runs."""
        return fmean(spent(run)[counter] for run in self.runs)


@dataclass(frozen=True)
class RunCell:
    """The arms of one task at one budget.

    Attributes:
        problem: name of the task.
        arms: at least one.
        unequal: whether their budgets differ, and the comparison was forced.
        notes: what a reader has to know.
    """

    problem: str
    arms: tuple[ArmRuns, ...]
    unequal: bool
    notes: tuple[str, ...]


def spent(run: RunRecord) -> dict[str, float]:
    """The counters of a run's ledger by name, and the seconds of work."""
    seconds = run.batches[-1].seconds if run.batches else 0.0
    return {name: getattr(run.ledger, name) for name in (*_COUNTERS, *_FOUND)} | {"seconds": seconds}


def group_runs(runs: Sequence[RunRecord], budget_of: str, *, force: bool) -> list[RunCell]:
    """The cells that runs fall into, by task and budget.

    Args:
        runs: finished ones, in any order.
        budget_of: the counter that has to be equal, one of `BUDGETS`.
        force: whether arms of unequal budgets are put side by side all the same, and labelled so.

    Raises:
        UserError: there are no runs; some may not be compared, see `check_runs`; two have the same arm and seed; or
            budgets differ and nothing is forced.
    """
    if budget_of not in BUDGETS:
        raise UserError(f"Unknown budget {budget_of!r}. Choose one of: {', '.join(BUDGETS)}.")
    check_runs(runs)
    cells = []
    for problem in sorted({run.config.problem for run in runs}):
        mine = [run for run in runs if run.config.problem == problem]
        cells += [_cell(problem, part, budget_of, force) for part in _parts(problem, mine, budget_of, force)]
    return cells


def _parts(problem: str, runs: Sequence[RunRecord], budget_of: str, force: bool) -> list[list[RunRecord]]:
    """The runs of each cell of a task: those of one planned budget; arms that are alone there are brought together."""
    planned = _clusters([[run] for run in runs], lambda group: group[0].config.budget)
    alone = [part for part in planned if len(_by_settings(part)) == 1]
    together = [part for part in planned if part not in alone]
    joined = _clusters(alone, lambda part: fmean(spent(run)[budget_of] for run in part))
    left = [part for part in joined if len(_by_settings(part)) == 1]
    if len({tuple(_by_settings(part)) for part in left}) > 1:
        if not force:
            raise UserError(_no_common_budget(problem, left, budget_of))
        joined = [part for part in joined if part not in left] + [[run for part in left for run in part]]
    return sorted(together + joined, key=lambda part: min(run.config.budget for run in part))


def _clusters(parts: Sequence[list[RunRecord]], size: Callable[[list[RunRecord]], float]) -> list[list[RunRecord]]:
    """Parts brought together where their sizes are at most `TOLERANCE` above the least of them."""
    found: list[list[RunRecord]] = []
    least = 0.0
    for part in sorted(parts, key=size):
        if not found or size(part) > least * (1 + TOLERANCE):
            found.append([])
            least = size(part)
        found[-1].extend(part)
    return found


def _cell(problem: str, runs: Sequence[RunRecord], budget_of: str, force: bool) -> RunCell:
    groups = _by_settings(runs)
    if len({run.config.budget for run in runs}) > 1:
        groups = _by_settings(runs, with_budget=True)
    for group in groups.values():
        _check_seeds(group)
    settings = [arm_settings(group[0]) | _own_budget(group, groups.values()) for group in groups.values()]
    names = arm_names(settings)
    arms = tuple(
        ArmRuns(name, group[0].config.method, one, tuple(sorted(group, key=lambda run: run.config.seed)))
        for name, one, group in zip(names, settings, groups.values(), strict=True)
    )
    told = _told(arms, budget_of)
    unequal = _differ([arm.spent(budget_of) for arm in arms])
    if unequal and not force:
        raise UserError(
            f"The arms for {problem} spent budgets that differ by more than {TOLERANCE:.0%}: {told}. Compare runs of "
            "equal budgets, choose another counter by --budget-of, or add --force and have them labelled unequal."
        )
    notes = [f"UNEQUAL budgets: {told}."] if unequal else []
    return RunCell(problem, arms, unequal, (*notes, *_other_budgets(arms, budget_of), *_confounded(arms)))


def arm_settings(run: RunRecord) -> dict[str, Any]:
    """The settings that make the arm of a run, by name: those of the sampling one by one, and the engine around it."""
    values = asdict(run.config)
    sampling = values.pop("sampling")
    host = run.facts.get("host") or {}
    values |= {"engine": host.get("name"), "schedule": host.get("schedule"), "evaluator": host.get("evaluator")}
    left_out = _PLACE | _CHECKED | _MACHINE | (frozenset() if run.config.learns else _LEARNING)
    return {name: value for name, value in {**values, **sampling}.items() if name not in left_out}


def _by_settings(runs: Iterable[RunRecord], *, with_budget: bool = False) -> dict[tuple[object, ...], list[RunRecord]]:
    groups: dict[tuple[object, ...], list[RunRecord]] = defaultdict(list)
    for run in runs:
        key: tuple[object, ...] = tuple(sorted(arm_settings(run).items()))
        groups[(*key, run.config.budget) if with_budget else key].append(run)
    return dict(groups)


def _own_budget(group: Sequence[RunRecord], groups: Iterable[Sequence[RunRecord]]) -> dict[str, int]:
    """The planned budget as a setting, where the arms of a cell have several."""
    several = len({run.config.budget for one in groups for run in one}) > 1
    return {"budget": group[0].config.budget} if several else {}


def arm_names(settings: Sequence[Settings]) -> list[str]:
    """The method of each arm with those settings, other than the defaults, in which arms of that method differ."""
    names = []
    for one in settings:
        same = [other for other in settings if other["method"] == one["method"]]
        differing = [name for name in one if len({other[name] for other in same}) > 1]
        names.append(" ".join([one["method"], *filter(None, (_label(name, one[name]) for name in differing))]))
    return names


def _label(name: str, value: object) -> str:
    """A setting in few words; nothing where it is as usual."""
    if value == _DEFAULTS.get(name):
        return ""
    words = _WORDS.get(name, name.replace("_", " "))
    shown = "" if value is True else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{words} {shown}".strip()


def _check_seeds(group: Sequence[RunRecord]) -> None:
    by_seed: dict[int, RunRecord] = {}
    for run in group:
        other = by_seed.setdefault(run.config.seed, run)
        if other is not run:
            raise UserError(
                f"{other.folder} and {run.folder} are runs of the same arm with the same seed {run.config.seed}. "
                "They are no two repetitions: leave one of them out."
            )


def _differ(amounts: Sequence[float]) -> bool:
    return max(amounts) > min(amounts) * (1 + TOLERANCE)


def _told(arms: Sequence[ArmRuns], counter: str) -> str:
    parts = [f"{arm.name} {arm.spent(counter):,.0f}" for arm in arms]
    return f"{', '.join(parts)} {counter.replace('_', ' ')}"


def _other_budgets(arms: Sequence[ArmRuns], budget_of: str) -> list[str]:
    """What was not held equal and is not."""
    others = [name for name in BUDGETS if name != budget_of and _differ([arm.spent(name) for arm in arms])]
    return [f"Not held equal: {_told(arms, name)}." for name in others]


def _confounded(arms: Sequence[ArmRuns]) -> list[str]:
    """Settings other than the method's own in which arms of different methods differ."""
    shared = set.intersection(*(set(arm.settings) for arm in arms)) - {"method", "budget"} - _LEARNING
    notes = []
    for name in sorted(shared):
        if len({arm.settings[name] for arm in arms}) > 1:
            values = ", ".join(f"{arm.name} {arm.settings[name]}" for arm in arms)
            notes.append(f"The arms differ in {name.replace('_', ' ')} too: {values}.")
    return notes if len({arm.method for arm in arms}) > 1 else []


def _no_common_budget(problem: str, parts: Sequence[Sequence[RunRecord]], budget_of: str) -> str:
    told = [
        f"{part[0].config.method} ({part[0].folder}{' and others' if len(part) > 1 else ''}) "
        f"{fmean(spent(run)[budget_of] for run in part):,.0f}"
        for part in parts
    ]
    return (
        f"The arms for {problem} spent budgets that differ by more than {TOLERANCE:.0%}: {', '.join(told)} "
        f"{budget_of.replace('_', ' ')}. Compare runs of equal budgets, or add --force and have them labelled unequal."
    )
