"""The database of a site set: pristine, as it is now, and what lies between."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from train_adapters.webarena.sites.schema import SCHEMA
from train_adapters.webarena.sites.seeding import fill

Row = dict[str, Any]
"""Values of one row by column."""


@dataclass(frozen=True)
class Change:
    """One row that differs from the pristine database.

    Attributes:
        table: it is in.
        before: as it was; None for a row that was added.
        after: as it is; None for a row that was removed.
    """

    table: str
    before: Row | None
    after: Row | None


class State:
    """A database in memory that one thread at a time may use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pristine = pristine()
        self._at_first = {table: _rows(self._pristine, table) for table in tables(self._pristine)}
        self._live = _connect()
        self.reset()

    def reset(self) -> None:
        """Bring the pristine database back; waits for whoever uses the present one."""
        with self._lock:
            self._pristine.backup(self._live)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """The database for this thread alone; what it wrote is undone if the block raises."""
        with self._lock:
            self._live.execute("BEGIN")
            try:
                yield self._live
            except BaseException:
                self._live.rollback()
                raise
            self._live.commit()

    def digest(self) -> str:
        """SHA-256 of the dump."""
        with self._lock:
            return digest(self._live)

    def changes(self) -> list[Change]:
        """All that differs from the pristine database, in the order of tables and keys."""
        with self._lock:
            return [change for table in tables(self._live) for change in self._differences(table)]

    def _differences(self, table: str) -> Iterator[Change]:
        before, after = self._at_first[table], _rows(self._live, table)
        if before.keys() == after.keys():
            return
        columns = [row[1] for row in self._live.execute(f"PRAGMA table_info({table})")]
        old, new = (
            {key: dict(zip(columns, row, strict=True)) for row, key in rows.items() if row not in others}
            for rows, others in ((before, after), (after, before))
        )
        for key in sorted(old.keys() | new.keys()):
            yield Change(table, old.get(key), new.get(key))


def pristine() -> sqlite3.Connection:
    """A new database with the seed data, the same every time."""
    database = _connect()
    database.executescript(SCHEMA)
    fill(database)
    return database


def digest(database: sqlite3.Connection) -> str:
    """SHA-256 of a database's dump: equal for equal content."""
    return hashlib.sha256("\n".join(database.iterdump()).encode()).hexdigest()


def tables(database: sqlite3.Connection) -> list[str]:
    """Names of the tables."""
    return [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def _connect() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA foreign_keys = ON")
    return database


def _rows(database: sqlite3.Connection, table: str) -> dict[tuple[Any, ...], tuple[str, ...]]:
    """Rows of a table, each with its primary key as texts that sort."""
    columns = database.execute(f"PRAGMA table_info({table})").fetchall()
    places = [column["cid"] for column in sorted(columns, key=lambda one: one["pk"]) if column["pk"]]
    cursor = database.cursor()
    cursor.row_factory = None
    return {row: tuple(f"{row[place]:>12}" for place in places) for row in cursor.execute(f"SELECT * FROM {table}")}
