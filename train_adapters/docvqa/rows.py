"""Questions about scanned pages from a local folder: JSONL rows, or the JSON files that the public data set comes in.

For each split there is one file beside the pictures, whose paths in it are relative to the folder:

- `train.jsonl`, `val.jsonl`, `test.jsonl`: a row a line, with `id`, `question`, `answers` (a list of texts), `image`
  and, if there is one, `doc_id`; or
- `train*.json`, `val*.json`, `test*.json` as the DocVQA challenge publishes them: an object whose `data` is a list of
  rows with `questionId`, `question`, `answers`, `image` and `ucsf_document_id` or `docId`.

Fields beyond these are not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from operators.errors import UserError

_SHOWN = 60
_NAMES = {"id": ("id", "questionId"), "doc_id": ("doc_id", "ucsf_document_id", "docId")}


@dataclass(frozen=True)
class DocvqaRow:
    """One question.

    Attributes:
        id: unique in its file.
        doc_id: of the document; the picture's hash where the row names none.
        question: the question.
        answers: all that is right, at least one.
        image: the picture's file, relative to the folder.
        sha256: of the picture's bytes.
        place: file and line, for messages.
    """

    id: str
    doc_id: str
    question: str
    answers: tuple[str, ...]
    image: str
    sha256: str
    place: str


def read_split(folder: Path, split: str, count: int) -> list[DocvqaRow]:
    """The first rows of a split; none where there is no file of it.

    Args:
        folder: with the split's file.
        split: train, val or test.
        count: most rows to take; only their pictures are opened.

    Raises:
        UserError: the file or one of these rows cannot be used, or a picture is not there: the message names the file
            and the line.
    """
    path = _file(folder, split)
    if path is None or count == 0:
        return []
    rows: dict[str, DocvqaRow] = {}
    for place, fields in islice(_entries(path), count):
        row = _Fields(folder, place, fields).row()
        if row.id in rows:
            raise UserError(f"{place}: the id {row.id!r} is that of {rows[row.id].place} too. Give each row its own.")
        rows[row.id] = row
    if not rows:
        raise UserError(f"{path} has no rows. Give a file of questions, see docs/react.md.")
    return list(rows.values())


def check_apart(splits: Mapping[str, Sequence[DocvqaRow]]) -> None:
    """Refuse splits that share a document or a picture: what is learnt from one would be measured on itself.

    Raises:
        UserError: it names both rows.
    """
    seen: dict[tuple[str, str], tuple[str, DocvqaRow]] = {}
    for split, rows in splits.items():
        for row in rows:
            for key in (("document", row.doc_id), ("picture", row.sha256)):
                other, first = seen.setdefault(key, (split, row))
                if other != split:
                    raise UserError(
                        f"{row.place} is about the same {key[0]} as {first.place}: splits {other} and {split} must not "
                        "share one. Move all rows of a document into one split."
                    )


def _file(folder: Path, split: str) -> Path | None:
    found = [path for path in (folder / f"{split}.jsonl",) if path.exists()] or sorted(folder.glob(f"{split}*.json"))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UserError(f"{folder} has several files for split {split}: {names}. Leave one of them there.")
    if not found and split == "train":
        raise UserError(f"There is no {folder / 'train.jsonl'}, nor a train*.json or Parquet files in its place.")
    return found[0] if found else None


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """What stands for each row, and its place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Cannot read {path}: {error}. Give a file of questions in UTF-8.") from error
    if path.suffix == ".jsonl":
        # Not splitlines(): it would also split at characters that JSON allows inside a string.
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
            yield f"{path}, line {number}", _json(line, f"{path}, line {number}")
        return
    whole = _json(text, str(path))
    rows = whole.get("data") if isinstance(whole, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"{path} has no list `data` of rows. Give a file as the DocVQA challenge publishes them.")
    for number, fields in enumerate(rows, start=1):
        yield f"{path}, row {number} of `data`", fields


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: no JSON ({error}). Correct or remove it.") from error


class _Fields:
    """One row's fields, and the place to name in a message."""

    def __init__(self, folder: Path, place: str, fields: Any) -> None:
        self._folder, self._place = folder, place
        if not isinstance(fields, dict):
            raise self._error(f"{_shown(fields)} is no JSON object; give one for each row")
        self._fields: dict[str, Any] = fields

    def row(self) -> DocvqaRow:
        digest = hashlib.sha256(self._picture()).hexdigest()
        return DocvqaRow(
            id=self._name("id"),
            doc_id=self._name("doc_id", digest),
            question=self._text("question"),
            answers=self._answers(),
            image=self._text("image"),
            sha256=digest,
            place=self._place,
        )

    def _text(self, name: str) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._error(f"field {name!r} is {_shown(value)}; give a text that is not empty")
        return value

    def _name(self, name: str, default: str | None = None) -> str:
        """A text or a number under one of the names that data sets use."""
        value = next((self._fields[one] for one in _NAMES[name] if one in self._fields), default)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self._error(f"field {name!r} is {_shown(value)}; give a text or a number")
        return str(value)

    def _answers(self) -> tuple[str, ...]:
        value = self._fields.get("answers")
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
            raise self._error(f"field 'answers' is {_shown(value)}; give a list of at least one text, none empty")
        return tuple(value)

    def _picture(self) -> bytes:
        """The bytes of its file."""
        name = self._text("image")
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            problem = f"the picture {name!r} cannot be read at {path} ({error.strerror})"
            raise self._error(f"{problem}; put it there, or correct field 'image'") from error

    def _error(self, problem: str) -> UserError:
        return UserError(f"{self._place}: {problem}.")


def _shown(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
