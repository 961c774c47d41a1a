"""Mathematical tasks from files: what is accepted, what is refused with which words, and what is held back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.math_tasks.rows import MathRow, asked, held_back, read_folder, read_rows


def row(number: int, **changes: Any) -> dict[str, Any]:
    made = {"id": f"a-{number}", "source": "tests", "question": f"What is {number} + 1?", "answer": str(number + 1)}
    return {**made, **changes}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows))
    return path


def test_rows_are_read_in_their_order(tmp_path: Path) -> None:
    """Else batches are other tasks than the file's."""
    extra = row(2, ability="MATH", split_source="train", note="kept by somebody")
    first, second = read_rows(write(tmp_path / "train.jsonl", row(1), extra))
    assert (first.id, first.question, first.answer, first.ability) == ("a-1", "What is 1 + 1?", "2", "")
    assert (second.ability, second.split_source) == ("MATH", "train")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(2, answer=""), "line 2: field 'answer' is ''"),
        (row(2, answer="  "), "line 2: field 'answer' is '  '"),
        (row(2, answer=3), "line 2: field 'answer' is 3"),
        (row(2, question=None), "line 2: field 'question' is None"),
        (row(2, ability=1), "line 2: field 'ability' is 1"),
        ({"id": "a-2", "source": "tests", "question": "?"}, "line 2: field 'answer' is missing"),
        (row(2, id="a-1"), "line 2: field 'id' is 'a-1', as in .*line 1"),
        ("[1]", r"line 2: \[1\] is no JSON object"),
        ("{", "line 2: no JSON"),
        ("", "line 2: the line is empty"),
        ('{"id": "a", "id": "b"}', "line 2: field 'id' is given twice"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, bad: Any, message: str) -> None:
    """Else one bad line among thousands has to be searched for, or is learnt from."""
    path = write(tmp_path / "train.jsonl", row(1), bad)
    with pytest.raises(UserError, match=message) as error:
        read_rows(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "Cannot read"), (b"", "has no rows"), (b"\xff\n", "is not UTF-8")]
)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    """Else the user sees an error of Python's."""
    path = tmp_path / "train.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_rows(path)


def test_a_folder_without_validation_holds_training_rows_back(tmp_path: Path) -> None:
    """Else there is nothing to watch but the test, which is then no test any more."""
    write(tmp_path / "train.jsonl", *map(row, range(20)))
    write(tmp_path / "test.jsonl", *map(row, range(100, 110)))
    rows = read_folder(tmp_path, 0.2, seed=1)
    assert {split: len(of_split) for split, of_split in rows.items()} == {"train": 16, "val": 4, "test": 10}
    assert {one.id for one in rows["train"] + rows["val"]} == {f"a-{number}" for number in range(20)}
    assert rows == read_folder(tmp_path, 0.2, seed=1)
    assert rows["val"] != read_folder(tmp_path, 0.2, seed=2)["val"]
    assert not read_folder(tmp_path, 0, seed=1)["val"]


def test_a_validation_file_is_used_as_it_is(tmp_path: Path) -> None:
    """Else rows to learn from are held back for nothing."""
    write(tmp_path / "train.jsonl", *map(row, range(20)))
    write(tmp_path / "val.jsonl", row(50))
    rows = read_folder(tmp_path, 0.2, seed=1)
    assert [len(rows[split]) for split in ("train", "val", "test")] == [20, 1, 0]


@pytest.mark.parametrize("other", ["val", "test"])
def test_a_question_in_two_splits_is_refused(tmp_path: Path, other: str) -> None:
    """Else what was learnt by heart is taken for skill."""
    write(tmp_path / "train.jsonl", row(1), row(2))
    write(tmp_path / f"{other}.jsonl", row(3), row(4, question="what is  2 + 1?"))
    with pytest.raises(UserError, match=rf"{other}.jsonl, line 2: 'a-4' asks what 'a-2' asks at .*train.jsonl, line 2"):
        read_folder(tmp_path, 0.5, seed=1)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """Else a typing error in --data ends in a batch that is too large."""
    with pytest.raises(UserError, match=r"neither train\.jsonl nor test\.jsonl"):
        read_folder(tmp_path, 0.1, seed=1)


@given(st.lists(st.integers(0, 8), max_size=30), st.floats(0, 0.99), st.integers())
def test_held_back_questions_are_not_learnt_from(numbers: list[int], share: float, seed: int) -> None:
    """Else a question that a file has twice is in both parts."""
    rows = [MathRow(str(place), "tests", f"Question {number}", "1") for place, number in enumerate(numbers)]
    kept, back = held_back(rows, share, seed)
    assert sorted(kept + back, key=rows.index) == rows
    assert not {asked(one) for one in kept} & {asked(one) for one in back}
    assert kept == [one for one in rows if one in kept]
