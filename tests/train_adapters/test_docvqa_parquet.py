"""The public data set's Parquet files: read as they are published, and split by document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from operators.errors import UserError
from train_adapters.docvqa.parquet import as_rows
from train_adapters.docvqa.rows import check_apart, read_split


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def question(number: int) -> dict[str, Any]:
    """Two questions about each page, two pages a document."""
    return {
        "questionId": str(number),
        "question": f"Question {number}?",
        "question_types": ["form"],
        "image": {"bytes": b"page %d" % (number // 2), "path": "page.png"},
        "docId": number // 4,
        "ucsf_document_id": f"doc{number // 4:03d}",
        "ucsf_document_page_no": str(number // 2 % 2),
        "answers": [f"answer {number}"],
        "data_split": "val",
    }


def published(folder: Path, count: int, **changes: Any) -> Path:
    """As the data set lies on disk: a folder in the folder, several files, and a test split without answers."""
    (folder / "DocVQA").mkdir(parents=True)
    rows = [{**question(number), **changes} for number in range(count)]
    for part, of_part in enumerate((rows[: count // 2], rows[count // 2 :])):
        parquet.write_table(pyarrow.Table.from_pylist(of_part), folder / f"DocVQA/validation-0000{part}-of-2.parquet")
    tests = [{**question(number), "answers": None} for number in range(3)]
    parquet.write_table(pyarrow.Table.from_pylist(tests), folder / "DocVQA/test-00000-of-1.parquet")
    return folder


def test_every_question_is_in_one_split_and_no_document_in_two(tmp_path: Path) -> None:
    """Else what was learnt by heart counts as understanding, or questions are lost on the way."""
    made = as_rows(published(tmp_path / "data", 120))
    splits = {split: read_split(made, split, 999) for split in ("train", "val", "test")}
    check_apart(splits)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 12, "val": 12, "test": 96}
    found = sorted((row for rows in splits.values() for row in rows), key=lambda row: int(row.id))
    assert [(row.question, row.answers, row.doc_id) for row in found] == [
        (f"Question {number}?", (f"answer {number}",), f"doc{number // 4:03d}") for number in range(120)
    ]
    assert (made / found[7].image).read_bytes() == b"page 3"


def test_the_folder_is_made_once_and_anew_where_the_files_change(tmp_path: Path, cache: Path) -> None:
    """Else each start of a training unpacks a gigabyte, or one reads pages that are no longer there."""
    data = published(tmp_path / "data", 40)
    made = as_rows(data)
    before = (made / "train.jsonl").stat().st_mtime_ns
    assert as_rows(data) == made
    assert (made / "train.jsonl").stat().st_mtime_ns == before
    (data / "DocVQA/validation-00001-of-2.parquet").unlink()
    assert as_rows(data) != made
    assert not list(cache.rglob("*.part"))


def test_a_folder_with_rows_is_taken_as_it_is(tmp_path: Path) -> None:
    """Else a user's own split is thrown away because the files it was made from lie beside it."""
    data = published(tmp_path / "data", 8)
    (data / "train.jsonl").write_text(json.dumps({"id": 1}) + "\n")
    assert as_rows(data) == data


@pytest.mark.parametrize("damage", ["no parquet", "cut off", "another column", "no picture"])
def test_what_cannot_be_read_is_named(tmp_path: Path, cache: Path, damage: str) -> None:
    """Else a download that broke off ends in a stack trace, or half of it is taken for the whole."""
    data = published(tmp_path / "data", 40)
    bad = data / "DocVQA/validation-00001-of-2.parquet"
    if damage == "another column":
        parquet.write_table(parquet.read_table(bad).drop_columns(["ucsf_document_id"]), bad)
    elif damage == "no picture":
        rows = [{**question(number), "image": {"bytes": None, "path": "page.png"}} for number in range(2)]
        parquet.write_table(pyarrow.Table.from_pylist(rows), bad)
    else:
        bad.write_bytes(b"PAR1" if damage == "no parquet" else bad.read_bytes()[:-50])
    told = {"another column": "has no column 'ucsf_document_id'", "no picture": "question '0' has no picture"}
    with pytest.raises(UserError, match=told.get(damage, "Fetch the file again")) as refused:
        as_rows(data)
    assert str(bad) in str(refused.value)
    assert not list((cache / "docvqa").glob("parquet-*"))
