"""JSONL files of tasks, read strictly: what is wrong is told with the file, the line, the field and a remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operators.errors import UserError

_SHOWN = 60


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        place: file and line, for messages.
        values: the object in it.
    """

    place: str
    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A field that holds a text with something in it.

        Raises:
            UserError: it is missing, or holds anything else.
        """
        if name not in self.values:
            raise self.error(name, "is missing", "add it")
        value = self.values[name]
        if not isinstance(value, str) or not value.strip():
            raise self.error(name, f"is {shown(value)}", "give a text that is not empty")
        return value

    def optional_text(self, name: str) -> str:
        """A field that holds a text or is left out, which is an empty one.

        Raises:
            UserError: it holds anything else.
        """
        value = self.values.get(name, "")
        if not isinstance(value, str):
            raise self.error(name, f"is {shown(value)}", "give a text, or leave it out")
        return value

    def error(self, field: str, problem: str, remedy: str) -> UserError:
        """What to raise about a field."""
        return UserError(f"{self.place}: field {field!r} {problem}; {remedy}.")


def read_lines(path: Path, what: str) -> list[Line]:
    """The lines of a file, each a JSON object.

    Args:
        path: the file.
        what: its rows, for messages, such as "mathematical tasks".

    Raises:
        UserError: the file cannot be read, is empty, or a line is no JSON object or names a field twice.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. Give a JSONL file of {what}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from error
    # Not splitlines(): it would also split at characters that JSON allows inside a string.
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise UserError(f"{path} has no rows. Give a JSONL file of {what}.")
    return [_line(f"{path}, line {number}", line) for number, line in enumerate(lines, start=1)]


def shown(value: object) -> str:
    """A value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _line(place: str, text: str) -> Line:
    if not text.strip():
        raise UserError(f"{place}: the line is empty; remove it.")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{place}: field {name!r} is given twice; give it once.")
        return dict(pairs)

    try:
        values: object = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: no JSON ({error}); give one JSON object a line.") from error
    if not isinstance(values, dict):
        raise UserError(f"{place}: {shown(values)} is no JSON object; give one JSON object a line.")
    return Line(place, values)
