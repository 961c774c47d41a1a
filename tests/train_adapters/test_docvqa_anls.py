"""The score of document questions, against values computed by hand."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.docvqa.anls import SUCCESS, normalised, similarity

PAIRS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "equal": ("Anna Adams", ("Anna Adams",), 1.0),
    "case": ("ANNA adams", ("Anna Adams",), 1.0),
    "marks are spaces": ("$1,284.50", ("1 284 50",), 1.0),
    "comma or none": ("1284", ("1,284",), 0.8),
    "surrounding space": ("  42 \n", ("42",), 1.0),
    "one of five letters": ("hallo", ("hello",), 0.8),
    "half is nothing": ("ab", ("ax",), 0.0),
    "just under half": ("abcde", ("abcxy",), 0.6),
    "over half": ("abc", ("xyz",), 0.0),
    "best of several": ("14 March", ("14 March 2019", "March 14"), 8 / 13),
    "the sentence around it": ("The total is 42", ("42",), 0.0),
    "no prediction": ("", ("42",), 0.0),
    "marks only": ("?!", ("42",), 0.0),
    "no answers": ("42", (), 0.0),
    "a sign": ("%", ("%",), 1.0),
    "another sign": ("$", ("%",), 0.0),
    "other script": ("Ω", ("Ω",), 1.0),
    "accents are marks": ("café 12", ("caf 12",), 1.0),
}


@pytest.mark.parametrize(("prediction", "answers", "expected"), PAIRS.values(), ids=PAIRS)
def test_scores_by_hand(prediction: str, answers: tuple[str, ...], expected: float) -> None:
    """Else figures cannot be compared with published ones."""
    assert similarity(prediction, answers) == pytest.approx(expected)


def levenshtein(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, start=1):
        above, row = row, [i]
        for j, other in enumerate(right, start=1):
            row.append(min(row[-1] + 1, above[j] + 1, above[j - 1] + (one != other)))
    return row[-1]


WORDS = st.text(alphabet="abc 1", max_size=12)


@given(WORDS, st.lists(WORDS, max_size=3))
def test_the_score_is_its_definition(prediction: str, answers: list[str]) -> None:
    """Else the score depends on a library's idea of it."""
    best = 0.0
    for right in map(normalised, answers):
        left = normalised(prediction)
        distance = levenshtein(left, right) / max(len(left), len(right), 1)
        if left and right and distance < 0.5:
            best = max(best, 1 - distance)
    assert similarity(prediction, answers) == pytest.approx(best)


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=3))
def test_scores_are_nothing_or_a_success(prediction: str, answers: list[str]) -> None:
    """Else the accuracy is not what the threshold says."""
    score = similarity(prediction, answers)
    assert score == 0.0 or SUCCESS < score <= 1.0
    assert similarity(prediction, [*answers, prediction.strip() or "x"]) >= score


def test_a_very_long_prediction_is_scored() -> None:
    """Else a model that repeats itself holds up a training."""
    assert similarity("42 " * 50_000, ("42",)) == 0.0


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a user of the plain installation reads a traceback."""
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(UserError, match=r"pip install 'eoh-esopt\[agents\]'"):
        similarity("a", ("a",))
