"""A page of text as a picture: lines at places in a few sizes, drawn with Pillow in a font that matplotlib brings."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono")
WIDTH = 1000
"""Of a page, in pixels; one line of normal text is 28 high, about 200 dots an inch of a small sheet."""

MARGIN = 60
NORMAL = 28
TITLE = 44
_LEADING = 1.6
_RULE = 18
_WHITE, _BLACK = 255, 0


@dataclass(frozen=True)
class Text:
    """A piece of a line.

    Attributes:
        x: of its left end, or of its right one, in pixels.
        text: without line ends.
        right: whether x is the right end.
    """

    x: int
    text: str
    right: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a page.

    Attributes:
        pieces: side by side; none for an empty line.
        size: of the letters, in pixels.
        bold: whether they are.
        ruled: whether a rule is drawn below.
    """

    pieces: tuple[Text, ...] = ()
    size: int = NORMAL
    bold: bool = False
    ruled: bool = False


def plain(text: str, *, size: int = NORMAL, bold: bool = False) -> Line:
    """A line of one piece at the left margin."""
    return Line((Text(MARGIN, text),), size, bold)


def png(lines: Sequence[Line], font: str) -> bytes:
    """The page as a file in shades of grey, with no metadata. The same bytes with the same release of Pillow.

    Args:
        lines: from top to bottom.
        font: one of `FONTS`.
    """
    from PIL import Image, ImageDraw  # which comes with matplotlib

    heights = [round(line.size * _LEADING) + _RULE * line.ruled for line in lines]
    image = Image.new("L", (WIDTH, sum(heights) + 2 * MARGIN), _WHITE)
    draw, y = ImageDraw.Draw(image), MARGIN
    for line, height in zip(lines, heights, strict=True):
        letters = _font(font, line.size, bold=line.bold)
        for piece in line.pieces:
            draw.text((piece.x, y), piece.text, fill=_BLACK, font=letters, anchor="ra" if piece.right else "la")
        if line.ruled:
            rule = y + height - _RULE
            draw.line((MARGIN, rule, WIDTH - MARGIN, rule), fill=_BLACK, width=2)
        y += height
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


@functools.lru_cache(maxsize=64)
def _font(name: str, size: int, *, bold: bool) -> FreeTypeFont:
    import matplotlib
    from PIL import ImageFont

    file = f"{name}-Bold.ttf" if bold else f"{name}.ttf"
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / file
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
