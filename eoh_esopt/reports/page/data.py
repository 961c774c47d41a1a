"""Runs as the report groups them: by task, then by arm, which is all settings but the seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.experiments.grouping import arm_names, arm_settings
from eoh_esopt.experiments.run_record import RunRecord, read_run
from eoh_esopt.reports.objective import Scale


@dataclass(frozen=True)
class Arm:
    """Runs that differ in nothing but their seeds.

    Attributes:
        label: its method, and the settings that tell it from other arms of that method.
        settings: what tells it from any other arm of its task, by name.
        runs: by seed.
    """

    label: str
    settings: Mapping[str, Any]
    runs: tuple[RunRecord, ...]

    @property
    def finished(self) -> tuple[RunRecord, ...]:
        """The runs whose budget is spent; means are over these."""
        return tuple(run for run in self.runs if is_finished(run))

    @property
    def unfinished(self) -> tuple[RunRecord, ...]:
        """The others."""
        return tuple(run for run in self.runs if not is_finished(run))


@dataclass(frozen=True)
class TaskRuns:
    """All runs of one task.

    Attributes:
        name: of the problem, with the data where that is not what the problem draws itself.
        key: the name as a part of file names and anchors.
        scale: what its objectives mean.
        arms: by label.
    """

    name: str
    key: str
    scale: Scale
    arms: tuple[Arm, ...]

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """Of all arms."""
        return tuple(run for arm in self.arms for run in arm.runs)


def is_finished(run: RunRecord) -> bool:
    """Whether the run's budget is spent."""
    return run.summary is not None


def read_runs(folders: Sequence[Path], follow: Callable[[], None]) -> list[RunRecord]:
    """Read runs, finished or not.

    Args:
        follow: called after each.

    Raises:
        UserError: one cannot be read.
    """
    runs = []
    for folder in folders:
        runs.append(read_run(folder, finished=False))
        follow()
    return runs


def group(runs: Iterable[RunRecord]) -> tuple[TaskRuns, ...]:
    """Tasks in the order of their names, each with its arms."""
    tasks: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        tasks[_task_key(run)].append(run)
    members = [tasks[key] for key in sorted(tasks)]
    names = [_task_name(runs[0]) for runs in members]
    return tuple(
        TaskRuns(name, _slug(name), runs[0].scale, arms_of(runs))
        for name, runs in zip(_distinct(names), members, strict=True)
    )


def arms_of(runs: Sequence[RunRecord]) -> tuple[Arm, ...]:
    """The arms of one task's runs, by label."""
    groups: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        groups[repr(sorted(_of_arm(run).items(), key=lambda one: one[0]))].append(run)
    members = [sorted(group, key=lambda run: (run.config.seed, str(run.folder))) for group in groups.values()]
    settings = [_of_arm(group[0]) for group in members]
    differing = _differing(settings)
    arms = [
        Arm(label, {name: own[name] for name in differing if name in own}, tuple(group))
        for label, own, group in zip(arm_names(settings), settings, members, strict=True)
    ]
    return tuple(sorted(arms, key=lambda arm: arm.label))


def _of_arm(run: RunRecord) -> dict[str, Any]:
    """The settings that make an arm: those of a comparison, and those in which compared runs may not differ."""
    host = run.facts.get("host")
    checked = {name: getattr(run.config, name) for name in ("model", "init_from", "budget")}
    return {**arm_settings(run), **checked, "engine": host["name"] if host else None}


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Settings that have several values, among the arms that have them at all."""
    names = sorted({name for one in settings for name in one})
    return [name for name in names if len({repr(one[name]) for one in settings if name in one}) > 1]


def settings_of(run: RunRecord) -> dict[str, Any]:
    """The settings of a run on one level, and the engine it ran inside of, if any."""
    settings = asdict(run.config)
    sampling = settings.pop("sampling")
    host = run.facts.get("host")
    return {**settings, **sampling, **({"engine": host["name"]} if host else {})}


def _task_key(run: RunRecord) -> str:
    """What runs of one task have in common: the problem and, by the values known of them, its instances."""
    known = sorted(run.scale.references.items())
    return repr((run.config.problem, run.config.data, run.scale.measure, run.scale.maximise, known))


def _task_name(run: RunRecord) -> str:
    problem, _, attribute = run.config.problem.partition(":")
    name = attribute or Path(problem).stem
    return f"{name}, data {Path(run.config.data).name}" if run.config.data else name


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number where several have one: tasks of one name have other instances or measures."""
    slugs = [_slug(name) for name in names]
    return [
        f"{name} ({number})" if slugs.count(slug) > 1 else name
        for number, (name, slug) in enumerate(zip(names, slugs, strict=True), 1)
    ]


def _slug(name: str) -> str:
    return "-".join("".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name).split())


def shown(value: Any) -> str:
    """A setting as people read it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
