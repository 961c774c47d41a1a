"""Drawn documents: the same from the same seed, apart from each other, and with answers that stand on the page."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from operators.errors import UserError
from train_adapters.docvqa.documents import KINDS
from train_adapters.docvqa.generator import Recipe, page_file
from train_adapters.docvqa.page import FONTS, MARGIN, WIDTH, png

RECIPES = st.builds(
    Recipe,
    st.integers(0, 2**31),
    st.sampled_from(["train", "val", "test"]),
    st.integers(0, 10_000),
    st.sampled_from([*KINDS]),
)


@given(RECIPES)
def test_every_answer_stands_on_the_page(recipe: Recipe) -> None:
    """Else a question cannot be answered by anyone who can read."""
    document = recipe.document()
    text = " ".join(piece.text for line in document.lines for piece in line.pieces)
    assert len(document.questions) >= 3
    for question in document.questions:
        assert any(answer in text for answer in question.answers), question
    assert recipe.question() in document.questions


@given(RECIPES)
def test_a_document_is_its_recipes_alone(recipe: Recipe) -> None:
    """Else a resumed training plays other tasks than the one that was stopped."""
    again = Recipe(recipe.seed, recipe.split, recipe.number, recipe.kind)
    assert again.document() == recipe.document()
    assert again.question() == recipe.question()
    other = Recipe(recipe.seed + 1, recipe.split, recipe.number, recipe.kind)
    assert other.name != recipe.name


def test_documents_differ_between_splits_and_numbers() -> None:
    """Else the test split is on what was trained."""
    recipes = [Recipe(1, split, number, kind) for split in ("train", "test") for number in range(20) for kind in KINDS]
    assert len({recipe.document().lines for recipe in recipes}) == len(recipes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_the_same_bytes_again(kind: str) -> None:
    """Else the same seed is another data set."""
    recipe = Recipe(3, "train", 0, kind)
    assert recipe.page() == recipe.page()
    with Image.open(io.BytesIO(recipe.page())) as image:
        assert image.mode == "L"
        assert image.width == WIDTH
        assert not image.info  # nothing of the question or its answers beside the picture


@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_beyond_the_margins(kind: str, font: str) -> None:
    """Else a word that an answer needs is cut off."""
    for number in range(8):
        with Image.open(io.BytesIO(png(Recipe(5, "train", number, kind).document().lines, font))) as image:
            ink = image.point(lambda shade: 255 * (shade < 128)).getbbox()
        assert ink is not None
        assert ink[0] >= MARGIN - 4
        assert ink[2] <= WIDTH - MARGIN + 4


def test_pages_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each episode draws its page anew, or a half-written one is shown."""
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path / "cache"))
    recipe = Recipe(7, "train", 0, "form")
    path = page_file(recipe)
    assert path.read_bytes() == recipe.page()
    before = path.stat().st_mtime_ns
    assert page_file(recipe) == path
    assert path.stat().st_mtime_ns == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert page_file(Recipe(7, "train", 1, "form")) != path


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every episode fails for a reason that nobody sees."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set EOH_ESOPT_CACHE"):
        page_file(Recipe(7, "train", 0, "form"))
