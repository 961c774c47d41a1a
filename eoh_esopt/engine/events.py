"""The run's folder: one append-only log of events, which resume, replay and reports all read.

A line is one JSON object; each is forced to disk before the search goes on. A line that a kill cut short is dropped
when the log is opened again, so at most the work in flight is lost. A lock file keeps a second process out.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from operators.errors import UserError

EVENTS = "events.jsonl"
CONFIG = "config.json"
HISTORY = "history.json"
BEST = "best_heuristic.py"
SUMMARY = "summary.json"
GIVEN = "start_population.json"

Event = dict[str, Any]


def holds_run(folder: Path) -> bool:
    """Whether a run was begun in the folder.

    Raises:
        UserError: there can be no folder of that name.
    """
    try:
        (folder / EVENTS).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UserError(f"Cannot use {folder} for a run: {error.strerror}. Choose another folder.") from error
    return True


def read_events(folder: Path) -> list[Event]:
    """All whole events of a run, oldest first.

    Raises:
        UserError: the folder holds no run, or a line in the middle of its log is damaged.
    """
    path = folder / EVENTS
    if not holds_run(folder):
        raise UserError(f"{folder} holds no run: there is no {EVENTS}. Give the folder that --out named.")
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. Give the folder that --out named.") from error
    events = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            event = json.loads(line)
            if not isinstance(event, dict) or "event" not in event:
                raise ValueError("no event")
            events.append(event)
        except ValueError as error:
            raise UserError(f"{path}, line {number}, is damaged ({error}). Restore the file from a copy.") from error
    return events


class EventLog:
    """Appends events to a run's log; use `open_log`."""

    def __init__(self, folder: Path, stream: FileIO, command: str = "run") -> None:
        self.folder = folder
        self._stream = stream
        self._command = command

    def append(self, kind: str, **fields: Any) -> Event:
        """Write one event and force it to disk.

        Raises:
            UserError: the disk is full or was taken away; the log keeps all earlier events.
        """
        event: Event = {"event": kind, **fields}
        line = json.dumps(event, ensure_ascii=True).encode() + b"\n"
        try:
            while line:
                line = line[self._stream.write(line) :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise UserError(
                f"Cannot write to {self.folder / EVENTS}: {error.strerror}. "
                f"Make room, then go on with: eoh-esopt {self._command} --resume {self.folder}"
            ) from error
        return event

    def write_file(self, name: str, text: str) -> None:
        """Write a file of the run's folder whole or not at all."""
        write_atomically(self.folder / name, text)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; text in UTF-8.

    Raises:
        UserError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UserError(f"Cannot write {path}: {error.strerror}. Make room or choose another folder.") from error


def check_new(folder: Path) -> None:
    """Look whether a run can be begun in a folder, before anything expensive is done. Writes nothing.

    Raises:
        UserError: the folder holds a run, or cannot be made or written to.
    """
    if holds_run(folder):
        raise UserError(f"{folder} holds a run already. Choose another --out, or go on with: --resume {folder}")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise UserError(
            f"Cannot use {folder} for a run: {nearest} is not a folder that can be written to. Choose another --out."
        )


@contextmanager
def claim(folder: Path, *, new: bool) -> Iterator[None]:
    """Hold a run's folder while the block runs.

    Args:
        folder: the run's folder; made if it is new.
        new: whether the run is to be begun there, or must be there already.

    Raises:
        UserError: the folder cannot be made, is in use, or does (not) hold a run.
    """
    _check_use(folder, new)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise UserError(f"Cannot use {folder} for a run: {error.strerror}. Choose another --out.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"{folder} is in use by another run. Wait for it, or choose another --out.") from error
        _check_use(folder, new)  # again: another run may have begun and ended here in between
        yield


def _check_use(folder: Path, new: bool) -> None:
    if new:
        check_new(folder)
    else:
        read_events(folder)


@contextmanager
def open_log(folder: Path, command: str = "run") -> Iterator[EventLog]:
    """The log of a claimed folder, ready to append; a last line that was cut short is removed.

    Args:
        folder: the run's folder.
        command: of `eoh-esopt`, which goes on with such a run.

    Raises:
        UserError: the log cannot be opened.
    """
    path = folder / EVENTS
    try:
        if path.exists():
            whole = path.read_bytes().rfind(b"\n") + 1
            os.truncate(path, whole)
        stream = path.open("ab", buffering=0)
    except OSError as error:
        raise UserError(f"Cannot open {path}: {error.strerror}. Choose another --out.") from error
    with stream:
        yield EventLog(folder, stream, command)
