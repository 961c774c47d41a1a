"""TOML files with settings of runs, read strictly: a key that is not known is an error that names the nearest one.

Settings have the names of the options of `eoh-esopt run`, with underscores. The problem is not among them: files say
how to search, not what for.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_KINDS: Mapping[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_WORDS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false"}


def kinds_of(config: type[DataclassInstance], without: Collection[str]) -> dict[str, str]:
    """The kind of value of each setting of a record, and of its sampling, which files name beside the others.

    Args:
        config: the record.
        without: its fields that no file may set.
    """
    found = (*fields(config), *fields(Sampling))
    return {one.name: str(one.type).partition(" ")[0] for one in found if one.name not in {"sampling", *without}}


_SETTINGS = kinds_of(RunConfig, without=("problem",))

_PATHS = ("data", "cassette", "init_from")


@dataclass(frozen=True)
class Place:
    """Where in a file a table stands, for messages and for what its paths are relative to.

    Attributes:
        file: the file.
        table: as its header in the file, such as "[eoh]"; empty for the top of the file.
    """

    file: Path
    table: str = ""

    def __str__(self) -> str:
        return f"{self.file}, {self.table}" if self.table else str(self.file)

    def inside(self, table: str) -> Place:
        """The place of a table of this file."""
        return Place(self.file, f"[{table}]")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        UserError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. Give the path of a TOML file.") from error
    except ValueError as error:  # of TOML and of UTF-8
        raise UserError(f"{path} is no TOML file: {error}. Mend it.") from error


def read_value(text: str) -> Any:
    """A value as TOML writes it; a text may go without quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def check_keys(table: Mapping[str, Any], known: Collection[str], place: Place) -> None:
    """Refuse a key that is not known.

    Raises:
        UserError: it names the file, the key and the nearest known key.
    """
    for key in table:
        if key not in known:
            raise UserError(f"{place}: unknown key {key!r}. {nearest(key, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """What to write in place of a name that is not known."""
    near = get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(known))}."


def checked_settings(
    table: Mapping[str, Any], place: Place, also: Collection[str] = (), kinds: Mapping[str, str] = _SETTINGS
) -> dict[str, Any]:
    """The settings of a table, each of its kind; paths that begin with a dot or name files are made absolute.

    Args:
        table: the table.
        place: where it stands.
        also: further keys that may stand in it; they are left out.
        kinds: the settings there are, each with the kind of its value; those of a run by default.

    Raises:
        UserError: a key is not known, or a value is of another kind.
    """
    check_keys(table, kinds.keys() | set(also), place)
    return {key: _checked(key, value, kinds[key], place) for key, value in table.items() if key in kinds}


def _checked(key: str, value: Any, kind: str, place: Place) -> Any:
    if type(value) not in _KINDS[kind]:
        raise UserError(f"{place}: {key} must be {_WORDS[kind]}, not {value!r}.")
    if key in _PATHS or (key == "model" and value.startswith(".")):
        return str((place.file.parent / Path(value).expanduser()).resolve())
    return float(value) if kind == "float" else value


def run_config(problem: str, settings: Mapping[str, Any]) -> RunConfig:
    """The settings of a run from those of files and options, which name the sampling's beside the others.

    Args:
        problem: name of the problem, or the path of the file that defines it.
        settings: by name; those that are missing have their defaults.

    Raises:
        UserError: a value is out of its range, or two of them do not go together.
    """
    own = {one.name for one in fields(Sampling)}
    sampling = Sampling(**{name: value for name, value in settings.items() if name in own})
    rest = {name: value for name, value in settings.items() if name not in own}
    if "model" not in rest:
        raise UserError("No model is named: give `model` in the file, or --model.")
    return RunConfig(problem=problem, sampling=sampling, **rest)
