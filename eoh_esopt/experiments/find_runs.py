"""The runs in folders that people name: a run's own folder, or one that holds such at any depth, as a sweep's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eoh_esopt.engine.events import EVENTS, holds_run
from eoh_esopt.experiments.run_record import RunRecord, read_run
from eoh_esopt.experiments.sweep_run import INDEX
from operators.errors import UserError

_NAMED = 5
"""Runs that a message names one by one."""


@dataclass(frozen=True)
class Found:
    """What lies in the folders.

    Attributes:
        runs: the finished ones, each folder's in the order of their names.
        missing: why others are not among them, a sentence for each.
    """

    runs: tuple[RunRecord, ...]
    missing: tuple[str, ...]


def find_runs(folders: Sequence[Path], *, partial: bool = False) -> Found:
    """All runs in the folders.

    Args:
        folders: of runs, or above them.
        partial: whether some may be missing: not finished, damaged, or a cell of a sweep that has not begun.

    Raises:
        UserError: there is no run in a folder; or some are missing though they may not: the message names them.
    """
    runs: list[RunRecord] = []
    missing: list[str] = []
    for folder in run_folders(folders):
        try:
            runs.append(read_run(folder))
        except UserError as error:
            missing.append(str(error))
    missing += [sentence for folder in folders for sentence in _not_begun(folder)]
    if missing and not partial:
        raise UserError(
            f"{_list([one.rstrip('.') for one in missing], '; ')}. Or add --partial: compare what is there."
        )
    return Found(tuple(runs), tuple(missing))


def run_folders(places: Iterable[Path]) -> list[Path]:
    """The runs' folders: the places themselves, or every run that lies below one.

    Raises:
        UserError: a place is missing, or there is no run in it.
    """
    found: dict[Path, Path] = {}
    for place in places:
        folders = [place] if holds_run(place) else sorted(path.parent for path in place.rglob(EVENTS))
        if not folders:
            what = "holds no run" if place.is_dir() else "is not there"
            raise UserError(f"{place} {what}. Give the folder that --out named, or one that has such folders in it.")
        found.update((folder.resolve(), folder) for folder in folders)
    return list(found.values())


def _not_begun(folder: Path) -> Iterator[str]:
    """The cells of a sweep that left no log."""
    path = folder / INDEX
    if not path.is_file():
        return
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        names = {str(cell["cell"]): str(cell.get("why") or cell["state"]) for cell in cells}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is damaged: {error!r}. Run the sweep again with this --out: it writes it anew."
        ) from error
    lost = [f"{name} ({state})" for name, state in names.items() if not holds_run(folder / name)]
    if lost:
        yield f"Cells of the sweep in {folder} have no run: {_list(lost, ', ')}."


def _list(parts: Sequence[str], between: str) -> str:
    more = f"{between}and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return between.join(parts[:_NAMED]) + more
