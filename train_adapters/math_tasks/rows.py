"""Mathematical tasks as the rows of JSONL files, and the splits that a folder of them makes.

A row has `id`, `source`, `question` and `answer`, all texts; it may have `ability` and `split_source`. Other fields are
left alone. `train.jsonl` is learnt from, `val.jsonl` evaluated on the way and `test.jsonl` at the end.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from operators.errors import UserError
from train_adapters.json_lines import read_lines

WHAT = "mathematical tasks"


@dataclass(frozen=True)
class MathRow:
    """One task.

    Attributes:
        id: unique in its file.
        source: where it comes from.
        question: as the model is asked it.
        answer: the right one.
        ability: what it asks for; may be empty.
        split_source: the split of its source that it was in; may be empty.
        place: file and line; empty where it was made.
    """

    id: str
    source: str
    question: str
    answer: str
    ability: str = ""
    split_source: str = ""
    place: str = ""


def read_rows(path: Path) -> list[MathRow]:
    """The rows of a file, each checked.

    Raises:
        UserError: the file cannot be read, is empty, or a row breaks the schema or has the id of another: the message
            names the file, the line, the field and the remedy.
    """
    rows: dict[str, MathRow] = {}
    for line in read_lines(path, WHAT):
        required = {name: line.text(name) for name in ("id", "source", "question", "answer")}
        optional = {name: line.optional_text(name) for name in ("ability", "split_source")}
        row = MathRow(**required, **optional, place=line.place)
        if row.id in rows:
            raise line.error("id", f"is {row.id!r}, as in {rows[row.id].place}", "give each row its own id")
        rows[row.id] = row
    return list(rows.values())


def read_folder(folder: Path, val_share: float, seed: int) -> dict[str, list[MathRow]]:
    """The rows of a folder by split.

    Where it has no val.jsonl, a drawn share of the rows of train.jsonl is held back for validation. The test rows are
    never used for anything but the test.

    Args:
        folder: has train.jsonl and test.jsonl, or one of them, and may have val.jsonl.
        val_share: of the training rows, from 0 to below 1; 0 for no validation.
        seed: of the draw.

    Raises:
        UserError: there is no such file, a row cannot be used, or a question is in two of the splits.
    """
    files = {split: folder / f"{split}.jsonl" for split in ("train", "val", "test")}
    there = {split: path for split, path in files.items() if path.exists()}
    if not there.keys() & {"train", "test"}:
        raise UserError(f"{folder} has neither train.jsonl nor test.jsonl. Give the folder with your {WHAT} as --data.")
    rows = {split: read_rows(there[split]) if split in there else [] for split in files}
    check_apart(rows)
    if "val" not in there:
        rows["train"], rows["val"] = held_back(rows["train"], val_share, seed)
    return rows


def held_back(rows: Sequence[MathRow], share: float, seed: int) -> tuple[list[MathRow], list[MathRow]]:
    """The rows in two: those to learn from and those to validate on, each in their order.

    Rows with the same question stay together: on what was learnt by heart, nothing is validated.
    """
    questions = list(dict.fromkeys(asked(row) for row in rows))
    chosen = set(random.Random(seed).sample(questions, round(share * len(questions))))
    return [row for row in rows if asked(row) not in chosen], [row for row in rows if asked(row) in chosen]


def check_apart(rows: Mapping[str, Sequence[MathRow]]) -> None:
    """Refuse splits that share a question.

    Raises:
        UserError: it names the two rows.
    """
    seen: dict[str, tuple[str, MathRow]] = {}
    for split, of_split in rows.items():
        for row in of_split:
            other, first = seen.setdefault(asked(row), (split, row))
            if other != split:
                raise UserError(
                    f"{row.place}: {row.id!r} asks what {first.id!r} asks at {first.place}. What is learnt must not be "
                    "asked in an evaluation: remove one of the two."
                )


def asked(row: MathRow) -> str:
    """The question as it is compared with others: but for spaces and case."""
    return " ".join(row.question.casefold().split())
