"""How to make the runs of a report again: commands, versions, machines, checksums."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.reports.page.data import Arm, TaskRuns, is_finished
from eoh_esopt.reports.page.tables import Table, columns

_POSITIONAL = ("problem", "model", "seed")


@dataclass(frozen=True)
class Recipe:
    """How the runs of one arm are made.

    Attributes:
        arm: its label.
        command: for a shell; empty where another engine began the runs.
        host: the engine that the runs are part of; empty for our own.
    """

    arm: str
    command: str
    host: str


def recipe(task: TaskRuns, arm: Arm) -> Recipe:
    """The command of an arm's runs, with a loop where there are several seeds."""
    host = arm.runs[0].facts.get("host")
    if host:
        return Recipe(arm.label, "", str(host["name"]))
    seeds = sorted({run.config.seed for run in arm.runs})
    out = f"runs/{task.key}-{arm.runs[0].config.method}"
    if len(seeds) == 1:
        return Recipe(arm.label, command(arm.runs[0].config, str(seeds[0]), f"{out}-{seeds[0]}"), "")
    line = command(arm.runs[0].config, "$seed", f"{out}-$seed")
    return Recipe(arm.label, f"for seed in {' '.join(map(str, seeds))}; do\n  {line}\ndone", "")


def command(config: RunConfig, seed: str, out: str) -> str:
    """The command that begins a run with these settings.

    Args:
        seed: as the shell is to read it.
        out: the same, the run's folder.
    """
    words = ["eoh-esopt", "run", shlex.quote(config.problem), "--model", shlex.quote(config.model)]
    return " ".join([*words, "--seed", seed, *_options(config), "--out", out])


def _options(config: RunConfig) -> Iterator[str]:
    """The settings that are not the defaults."""
    defaults = {one.name: one.default for one in fields(RunConfig)} | asdict(Sampling())
    settings: Mapping[str, Any] = asdict(config)
    for name, value in {**settings, **settings["sampling"]}.items():
        if name in (*_POSITIONAL, "sampling") or value == defaults[name]:
            continue
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield shlex.quote(str(value))


def checksums(tasks: Sequence[TaskRuns]) -> Table:
    """The weights each run began and ended with."""
    rows = tuple(
        (task.name, arm.label, run.config.seed, run.facts["base_checksum"], _final(run))
        for task in tasks
        for arm in task.arms
        for run in arm.runs
    )
    heads = (*columns("task", "arm", seed="d"), *columns("weights at first (SHA-256)", "at last"))
    return Table("checksums", "Checksums of the weights", heads, rows)


def _final(run: RunRecord) -> str:
    return str(run.summary["weights_after"]) if run.summary is not None and is_finished(run) else "unfinished"


def machines(runs: Sequence[RunRecord]) -> Table:
    """What the runs' machines and libraries were, and how many runs had each."""
    facts = ({**run.facts["machine"], "sandbox": run.facts.get("isolation")} for run in runs)
    return _counted("machines", "Machines and versions", facts)


def models(runs: Sequence[RunRecord]) -> Table:
    """What the runs' models were, and how many runs had each."""
    return _counted("models", "Models", (run.facts["model"] for run in runs))


def _counted(name: str, title: str, facts: Iterable[Mapping[str, Any]]) -> Table:
    counts = Counter(pair for one in facts for pair in _flat(one))
    rows = tuple((what, value, count) for (what, value), count in sorted(counts.items()))
    return Table(name, title, columns("what", "value", runs="d"), rows)


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
