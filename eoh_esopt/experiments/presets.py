"""Presets: named settings of runs in readable TOML files, which can be laid over one another.

Settings stand at the top of the file. A table [eoh] or [sample] holds what is only for the methods of that loop, frozen
or learning; a table named as a scope what is only for runs in that scope. `about` says what the preset is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import eoh_esopt
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.settings_files import Place, check_keys, checked_settings, nearest, read_toml
from eoh_esopt.models.scopes import SCOPES
from operators.errors import UserError

FOLDER = Path(eoh_esopt.__file__).parent / "presets"
SWEEPS = FOLDER / "sweeps"

_LOOPS = ("eoh", "sample")
_DECIDES = ("method", "scope")


@dataclass(frozen=True)
class Preset:
    """Named settings.

    Attributes:
        name: as it was asked for.
        settings: what holds for every run.
        tables: by loop ("eoh", "sample") and by scope, what holds for such runs only.
        about: what it is for, in one line.
    """

    name: str
    settings: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: str = ""


def preset_names() -> tuple[str, ...]:
    """The presets that are shipped, in alphabetical order."""
    return _names(FOLDER)


def sweep_names() -> tuple[str, ...]:
    """The sweeps that are shipped, in alphabetical order."""
    return _names(SWEEPS)


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def find_file(name: str, folders: Sequence[Path], base: Path | None = None) -> Path:
    """The TOML file of that name in the folders, or the one at that path.

    Args:
        name: a shipped one's name, or the path of a TOML file.
        folders: where to look for the name; the first that has it counts.
        base: what a relative path starts from; None for the working folder.

    Raises:
        UserError: there is no such name. Whether there is a file at a path is seen when it is read.
    """
    if name.endswith(".toml") or "/" in name:
        path = Path(name).expanduser()
        return path if base is None else base / path
    known = {one: folder / f"{one}.toml" for folder in reversed(folders) for one in _names(folder)}
    if name not in known:
        raise UserError(f"Unknown name {name!r}. {nearest(name, known)} Or give the path of a .toml file.")
    return known[name]


def load_preset(name: str, base: Path | None = None) -> Preset:
    """Read a preset.

    Args:
        name: a shipped one's name, or the path of a TOML file.
        base: what a relative path starts from; None for the working folder.

    Raises:
        UserError: there is none, or the file has a key that is not known or a value of another kind.
    """
    path = find_file(name, (FOLDER,), base)
    content, place = read_toml(path), Place(path)
    about = content.pop("about", "")
    if not isinstance(about, str):
        raise UserError(f"{place}: about must be a text, not {about!r}.")
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    plain = {key: value for key, value in content.items() if key not in tables}
    check_keys(tables, {*_LOOPS, *SCOPES}, place)
    return Preset(
        name=name,
        settings=checked_settings(plain, place),
        tables={key: _conditional(value, place.inside(key)) for key, value in tables.items()},
        about=about,
    )


def _conditional(table: Mapping[str, Any], place: Place) -> dict[str, Any]:
    for key in _DECIDES:
        if key in table:
            raise UserError(f"{place}: {key} decides which tables hold, so it stands at the top of the file only.")
    return checked_settings(table, place)


def load_presets(value: Any, place: Place) -> tuple[Preset, ...]:
    """The presets that a file names: one, or a list of them.

    Raises:
        UserError: that is neither, or there is no such preset.
    """
    names = [value] if isinstance(value, str) else value
    if not (isinstance(names, list) and all(isinstance(one, str) for one in names)):
        raise UserError(f"{place}: preset must be a name or a list of names, not {value!r}.")
    return tuple(load_preset(one, place.file.parent) for one in names)


def merged(layers: Sequence[Preset]) -> dict[str, Any]:
    """The settings of several layers; what a later one says goes over what an earlier one said.

    The method and the scope that all of them lead to decide which tables hold.
    """
    plain: dict[str, Any] = {}
    for layer in layers:
        plain |= layer.settings
    holding = _holding(plain)
    found: dict[str, Any] = {}
    for layer in layers:
        found |= layer.settings
        for table in holding:
            found |= layer.tables.get(table, {})
    return found


def _holding(plain: Mapping[str, Any]) -> tuple[str, ...]:
    method, scope = plain.get("method", RunConfig.method), plain.get("scope", RunConfig.scope)
    return (method.removeprefix("esopt-"), scope)
