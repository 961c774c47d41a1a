"""Drawn documents: the same recipe gives the same page and the same questions."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random

from eoh_esopt.models.cache import cache_root
from operators.errors import UserError
from train_adapters.docvqa.documents import KINDS, Document, Question
from train_adapters.docvqa.page import FONTS, png

VERSION = 1
"""Of all that is drawn; it changes with the pages."""


@dataclass(frozen=True)
class Recipe:
    """What a document is drawn from. Each has a random stream of its own.

    Attributes:
        seed: of the data set.
        split: the document's part of it.
        number: of the document in the split, from 0.
        kind: one of `KINDS`.
    """

    seed: int
    split: str
    number: int
    kind: str

    @property
    def name(self) -> str:
        """Of the document, unique among all."""
        return f"{self.kind}-{self.seed}-{self.split}-{self.number:05}"

    def _stream(self, use: str) -> Random:
        return Random(f"docvqa/{VERSION}/{self.name}/{use}")

    def document(self) -> Document:
        """What is on the page, and the questions about it."""
        return KINDS[self.kind](self._stream("document"))

    def question(self) -> Question:
        """One of the questions."""
        return self._stream("question").choice(self.document().questions)

    @property
    def font(self) -> str:
        """Of the page."""
        return self._stream("font").choice(FONTS)

    def page(self) -> bytes:
        """The page as a PNG file."""
        return png(self.document().lines, self.font)


def page_file(recipe: Recipe) -> Path:
    """A file with the page in the cache, drawn if it is not there.

    It is named by the hash of what is drawn, so that a page of another release is never taken for it.

    Raises:
        UserError: the cache cannot be written to.
    """
    folder = cache_root() / "docvqa"
    drawn = f"{recipe.document().lines}/{recipe.font}/{version('pillow')}"
    path = folder / f"{hashlib.sha256(drawn.encode()).hexdigest()[:24]}.png"
    if not path.exists():
        page = recipe.page()
        temporary = path.with_suffix(f".{os.getpid()}.part")  # others may draw the same page at the same time
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(page)
            temporary.replace(path)
        except OSError as error:
            raise UserError(f"Cannot write {path}: {error.strerror}. Make room, or set EOH_ESOPT_CACHE.") from error
    return path
