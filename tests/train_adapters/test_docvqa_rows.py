"""Document questions read from a local folder: what is taken, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operators.errors import UserError
from train_adapters.docvqa.rows import check_apart, read_split


def row(number: int, **changes: Any) -> dict[str, Any]:
    fields = {"id": f"q{number}", "doc_id": f"d{number}", "question": "Who?", "answers": ["Anna", "A."]}
    return {**fields, "image": f"pages/{number}.png", **changes}


def folder(tmp_path: Path, **splits: list[Any]) -> Path:
    """With a file of each split, and the pictures 0 to 5."""
    (tmp_path / "pages").mkdir()
    for number in range(6):
        (tmp_path / "pages" / f"{number}.png").write_bytes(b"picture %d" % number)
    for split, rows in splits.items():
        lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_rows_are_read_in_their_order(tmp_path: Path) -> None:
    """Else the first 100 questions are other ones than everybody's."""
    data = folder(tmp_path, train=[row(0, source="scan"), row(1, question="What is\u2028it?"), row(2)])
    rows = read_split(data, "train", 2)
    assert [(one.id, one.doc_id, one.answers, one.image) for one in rows] == [
        ("q0", "d0", ("Anna", "A."), "pages/0.png"),
        ("q1", "d1", ("Anna", "A."), "pages/1.png"),
    ]
    assert rows[0].sha256 != rows[1].sha256
    assert read_split(data, "val", 2) == []
    assert read_split(data, "train", 0) == []


def test_the_published_files_are_read_as_they_are(tmp_path: Path) -> None:
    """Else a user of the public data set has to convert it first."""
    data = folder(tmp_path)
    fields = {
        "questionId": 49153,
        "question": "What?",
        "question_types": ["form"],
        "image": "pages/3.png",
        "docId": 14465,
    }
    fields |= {"ucsf_document_id": "pybv0228", "answers": ["0.28"], "data_split": "val"}
    (data / "val_v1.0_withQT.json").write_text(json.dumps({"dataset_name": "DocVQA", "data": [fields]}))
    [found] = read_split(data, "val", 5)
    assert (found.id, found.doc_id, found.question) == ("49153", "pybv0228", "What?")


def test_a_row_without_a_document_is_told_apart_by_its_picture(tmp_path: Path) -> None:
    """Else rows that name no document cannot be used, or all count as one document."""
    first, second = row(0), row(1)
    del first["doc_id"], second["doc_id"]
    rows = read_split(folder(tmp_path, train=[first, second]), "train", 9)
    assert rows[0].doc_id != rows[1].doc_id


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "line 2: no JSON"),
    "no object": ("[1]", "line 2: [1] is no JSON object"),
    "empty line": ("", "line 2: no JSON"),
    "no id": ({"question": "Who?", "answers": ["A"], "image": "pages/1.png"}, "line 2: field 'id' is missing"),
    "id is a list": (row(1, id=[1]), "line 2: field 'id' is [1]"),
    "no question": (row(1, question=" "), "line 2: field 'question' is ' '"),
    "no answers": (row(1, answers=[]), "line 2: field 'answers' is []"),
    "answers hidden": (row(1, answers=None), "line 2: field 'answers' is missing"),
    "answer is no text": (row(1, answers=["A", 7]), "line 2: field 'answers' is ['A', 7]"),
    "no picture": (row(1, image="pages/77.png"), "line 2: the picture 'pages/77.png' cannot be read at "),
    "picture is a folder": (row(1, image="pages"), "line 2: the picture 'pages' cannot be read at "),
    "id twice": (row(1, id="q0"), "line 2: the id 'q0' is that of "),
}


@pytest.mark.parametrize(("bad", "message"), BAD.values(), ids=BAD)
def test_bad_rows_are_named_by_file_and_line(tmp_path: Path, bad: Any, message: str) -> None:
    """Else a user searches 5,000 lines for a mistake."""
    data = folder(tmp_path, train=[row(0), bad])
    with pytest.raises(UserError) as refused:
        read_split(data, "train", 9)
    assert str(refused.value).startswith(f"{data / 'train.jsonl'}, {message}")
    assert "\n" not in str(refused.value)


def test_a_folder_without_a_file_says_what_is_wanted(tmp_path: Path) -> None:
    """Else a download in another format leaves a user without a clue."""
    with pytest.raises(UserError, match=r"There is no .*train\.jsonl"):
        read_split(tmp_path, "train", 1)


def test_files_that_leave_a_choice_or_have_nothing_are_refused(tmp_path: Path) -> None:
    """Else one of two files is taken without a word, or a training on nothing begins."""
    for name in ("val_v1.0.json", "val_v1.0_withQT.json"):
        (tmp_path / name).write_text('{"data": []}')
    with pytest.raises(UserError, match="several files for split val"):
        read_split(tmp_path, "val", 1)
    (tmp_path / "train.json").write_text("[]")
    with pytest.raises(UserError, match="no list `data`"):
        read_split(tmp_path, "train", 1)
    (tmp_path / "test.jsonl").write_text("")
    with pytest.raises(UserError, match="has no rows"):
        read_split(tmp_path, "test", 1)
    (tmp_path / "test.jsonl").write_bytes(b"\xff")
    with pytest.raises(UserError, match="Cannot read"):
        read_split(tmp_path, "test", 1)


@pytest.mark.parametrize(("changes", "shared"), [({"doc_id": "d0"}, "document"), ({"image": "pages/0.png"}, "picture")])
def test_splits_that_share_a_document_are_refused(tmp_path: Path, changes: dict[str, str], shared: str) -> None:
    """Else what was learnt by heart counts as understanding."""
    data = folder(tmp_path, train=[row(0), row(1, doc_id="d0")], test=[row(2), row(3, **changes)])
    splits = {split: read_split(data, split, 9) for split in ("train", "test")}
    with pytest.raises(UserError, match=rf"test\.jsonl, line 2 is about the same {shared} as .*train\.jsonl, line 1"):
        check_apart(splits)
    check_apart({"train": splits["train"], "test": splits["test"][:1]})
