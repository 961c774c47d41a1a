"""A sweep: arms x tasks x budgets x seeds, as its TOML file describes it.

Every cell is one run. What holds for it is laid over one another in this order: the sweep's presets and [settings], its
budget's, its task's and its arm's. Arms are the methods that are listed and the named sets of settings under [arms].
The same seed starts all arms alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from eoh_esopt.engine.config import METHODS, RunConfig
from eoh_esopt.experiments.presets import SWEEPS, Preset, find_file, load_presets, merged
from eoh_esopt.experiments.replicas import Replica, read_replicas
from eoh_esopt.experiments.settings_files import Place, check_keys, checked_settings, nearest, read_toml, run_config
from operators.errors import UserError
from problems import registry

_KEYS = ("about", "preset", "settings", "tasks", "methods", "arms", "budgets", "seeds", "replicas", "workers")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Level:
    """One choice along one axis of a sweep.

    Attributes:
        name: what its folder is called.
        layers: what it sets, over the levels before it.
    """

    name: str
    layers: tuple[Preset, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Attributes:
        task: the problem, as a run takes it.
        folder: of the run, inside the sweep's: TASK/ARM/seed-SEED, with the budget behind the arm where the sweep lists
            budgets.
        arm: the arm's name.
        config: the settings; what depends on the model is not filled in yet.
    """

    task: str
    folder: Path
    arm: str
    config: RunConfig

    @property
    def name(self) -> str:
        """What the cell is called: its folder inside the sweep's."""
        return self.folder.as_posix()


@dataclass(frozen=True)
class Sweep:
    """A sweep as it was read.

    Attributes:
        file: its file.
        about: what it is for, in one line.
        base: what holds for all cells.
        tasks: by problem, as a run takes it.
        arms: by name.
        budgets: by number of candidates; (None, ...) where the settings say it.
        seeds: of the repetitions.
        replicas: where cells may run; empty for what the machine has.
        workers: cells that run at once; None for what suits the machine.
    """

    file: Path
    about: str
    base: tuple[Preset, ...]
    tasks: Mapping[str, Level]
    arms: tuple[Level, ...]
    budgets: Mapping[int | None, Level]
    seeds: tuple[int, ...]
    replicas: tuple[Replica, ...]
    workers: int | None

    def cells(self, given: Mapping[str, Any] | None = None) -> list[Cell]:
        """All cells, a seed after the other, so that a sweep that is stopped early leaves whole comparisons.

        Args:
            given: settings that go over everything in the file.

        Raises:
            UserError: a cell's settings do not go together, or a given one tells the arms apart.
        """
        given = given or {}
        self._check_given(given)
        found = [
            self._cell(seed, task, budget, arm, given)
            for seed, task, budget, arm in product(self.seeds, self.tasks, self.budgets, self.arms)
        ]
        folders = [cell.folder for cell in found]
        for folder in folders:
            if folders.count(folder) > 1:
                raise UserError(f"{self.file} has two cells that are called {folder}. Give one arm another name.")
        return found

    def _cell(self, seed: int, task: str, budget: int | None, arm: Level, given: Mapping[str, Any]) -> Cell:
        own = {"seed": seed} if budget is None else {"seed": seed, "budget": budget}
        where = self.replicas[0].settings if self.replicas else {}
        layers = (*self.base, *self.budgets[budget].layers, *self.tasks[task].layers, *arm.layers)
        last = Preset("", {**own, **where, **given})
        folder = Path(self.tasks[task].name, arm.name + self.budgets[budget].name, f"seed-{seed}")
        try:
            return Cell(task, folder, arm.name, run_config(task, merged((*layers, last))))
        except UserError as error:
            raise UserError(f"{self.file}, cell {folder}: {error}") from error

    def _check_given(self, given: Mapping[str, Any]) -> None:
        axes = {"method", "seed"} | ({"budget"} if None not in self.budgets else set())
        layers = [layer for arm in self.arms for layer in arm.layers]
        told_apart = {key for one in layers for table in (one.settings, *one.tables.values()) for key in table}
        for key in given:
            if key in axes | told_apart:
                raise UserError(f"{key} cannot be set for the whole sweep: it tells cells of {self.file} apart.")


def load_sweep(name: str) -> Sweep:
    """Read a sweep.

    Args:
        name: a shipped one's name, or the path of a TOML file.

    Raises:
        UserError: there is none, or the file is not as it should be.
    """
    file = find_file(name, (SWEEPS,))
    content, place = read_toml(file), Place(file)
    check_keys(content, _KEYS, place)
    for key in ("tasks", "seeds"):
        if not content.get(key):
            raise UserError(f"{place}: {key} is missing. A sweep needs tasks, seeds, and methods or arms.")
    settings = checked_settings(_table(content, "settings", place), place.inside("settings"))
    return Sweep(
        file=file,
        about=str(content.get("about", "")),
        base=(*load_presets(content.get("preset", []), place), Preset("[settings]", settings)),
        tasks=_tasks(content["tasks"], place),
        arms=_arms(content, place),
        budgets=_budgets(content.get("budgets"), place),
        seeds=_seeds(content["seeds"], place),
        replicas=read_replicas(content.get("replicas", []), place),
        workers=_workers(content.get("workers"), place),
    )


def _table(content: Mapping[str, Any], key: str, place: Place) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise UserError(f"{place}: {key} must be a table, not {table!r}.")
    return table


def _listed(value: Any, place: Place, what: str) -> dict[str, tuple[Preset, ...]]:
    """Names and what each sets, from a list of names or a table of tables."""
    if isinstance(value, list):
        names = [str(one) for one in value]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{place}: {what} names {name!r} twice.")
        return dict.fromkeys(names, ())
    if not isinstance(value, dict):
        raise UserError(f"{place}: {what} must be a list or a table, not {value!r}.")
    return {name: _layers(table, place.inside(f"{what}.{name}")) for name, table in value.items()}


def _layers(table: Any, place: Place) -> tuple[Preset, ...]:
    """The presets and the settings of a level's table."""
    if not isinstance(table, dict):
        raise UserError(f"{place} must be a table of settings, not {table!r}.")
    own = checked_settings(table, place, also=("preset",))
    return (*load_presets(table.get("preset", []), place), Preset(place.table, own))


def _tasks(value: Any, place: Place) -> dict[str, Level]:
    """The problems by the name that a run takes; folders have the names of their files."""
    found: dict[str, Level] = {}
    for name, layers in _listed(value, place, "tasks").items():
        is_file = registry.is_file(name)
        if not is_file and name not in registry.names():
            raise UserError(f"{place}: unknown task {name!r}. {nearest(name, registry.names())}")
        task = registry.absolute(str(place.file.parent / name)) if is_file else name
        path, _, attribute = name.partition(":")
        stem = Path(path).stem if is_file else name
        found[task] = Level(f"{stem}-{attribute}" if attribute else stem, layers)
    return found


def _arms(content: Mapping[str, Any], place: Place) -> tuple[Level, ...]:
    if isinstance(content.get("methods"), dict):
        raise UserError(f"{place}: methods must be a list. Settings of an arm stand in [arms.NAME], beside its method.")
    methods = list(_listed(content.get("methods", []), place, "methods"))
    for name in methods:
        if name not in METHODS:
            raise UserError(f"{place}: unknown method {name!r}. {nearest(name, METHODS)}")
    arms = [Level(name, (Preset(name, {"method": name}),)) for name in methods]
    for name, layers in _listed(_table(content, "arms", place), place, "arms").items():
        if not _NAME.fullmatch(name):
            raise UserError(f"{place}: the arm {name!r} cannot be a folder. Use letters, digits, '.', '_' and '-'.")
        if name in methods:
            raise UserError(f"{place}: the arm {name!r} is a method that is listed already. Give it another name.")
        arms.append(Level(name, layers))
    if not arms:
        raise UserError(f"{place}: there is neither methods nor [arms], so there is nothing to run.")
    return tuple(arms)


def _budgets(value: Any, place: Place) -> dict[int | None, Level]:
    if value is None:
        return {None: Level("")}
    found: dict[int | None, Level] = {}
    for name, layers in _listed(value, place, "budgets").items():
        if not name.isdecimal():
            raise UserError(f"{place}: a budget must be a whole number, not {name!r}.")
        found[int(name)] = Level(f"-b{int(name)}", layers)
    return found


def _seeds(value: Any, place: Place) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)
    if not whole or len(set(value)) < len(value):
        raise UserError(f"{place}: seeds must be a list of different whole numbers of at least 0, not {value!r}.")
    return tuple(value)


def _workers(value: Any, place: Place) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise UserError(f"{place}: workers must be a whole number of at least 1, not {value!r}.")
