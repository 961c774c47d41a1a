"""Colours, line styles and hatches of the figures; colours have names, so that a page can change them in the dark.

The palette is that of Okabe and Ito, which people with colour-blindness can tell apart. Nothing relies on it alone:
every line has a style of its own, and every kind of bar a hatch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LIGHT = {
    "ink": "#1c1c1e",
    "muted": "#6a6a70",
    "rule": "#dcdce1",
    "paper": "#ffffff",
    "blue": "#0072b2",
    "red": "#d55e00",
    "green": "#009e73",
    "pink": "#cc79a7",
    "amber": "#e69f00",
    "sky": "#56b4e9",
    "grey": "#9a9aa2",
}
"""Colours by name, on white paper."""

DARK = {
    "ink": "#e9e9ec",
    "muted": "#a2a2aa",
    "rule": "#3a3a40",
    "paper": "#17171a",
    "blue": "#4ba6e0",
    "red": "#ff8a3d",
    "green": "#2cc79a",
    "pink": "#e2a0c6",
    "amber": "#f2bd45",
    "sky": "#9ad4f7",
    "grey": "#85858d",
}
"""The same names on dark paper."""

RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.parse_math": False,
    "text.color": LIGHT["ink"],
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelsize": 8,
    "axes.labelcolor": LIGHT["muted"],
    "axes.edgecolor": LIGHT["muted"],
    "axes.facecolor": LIGHT["paper"],
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 0.6,
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.7,
    "hatch.linewidth": 0.8,
    "figure.facecolor": LIGHT["paper"],
    "svg.fonttype": "none",
    "svg.hashsalt": "eoh-esopt",
}
"""Settings of matplotlib while a figure is drawn and written."""


class LineStyle(NamedTuple):
    """How one series is drawn; styles repeat only after 30 of them."""

    colour: str
    dash: Any


class Fill(NamedTuple):
    """How one kind of bar is drawn."""

    colour: str
    hatch: str


_COLOURS = ("blue", "red", "green", "pink", "amber", "sky")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (5, 1.4, 1, 1.4)), (0, (1.2, 1.2)), (0, (9, 2)))
_REFERENCE_DASHES: tuple[Any, ...] = ((0, (1, 2)), (0, (4, 2)), (0, (4, 2, 1, 2)), (0, (8, 3)))

FILLS = {
    "new": Fill("blue", ""),
    "duplicate": Fill("sky", "///"),
    "no code": Fill("grey", ""),
    "syntax": Fill("grey", "\\\\\\"),
    "wrong name": Fill("grey", "xxx"),
    "wrong arguments": Fill("grey", "..."),
    "raised": Fill("red", ""),
    "timeout": Fill("red", "///"),
    "out of memory": Fill("red", "xxx"),
    "killed": Fill("red", "..."),
    "not finite": Fill("amber", ""),
    "wrong shape": Fill("amber", "\\\\\\"),
    "invalid solution": Fill("pink", "///"),
    "infrastructure": Fill("muted", "---"),
}
"""Kinds of outcomes, in the order of the bars: good ones, no program, a failing program, an answer of no use."""


def series(index: int) -> LineStyle:
    """The style of a series."""
    return LineStyle(LIGHT[_COLOURS[index % len(_COLOURS)]], _DASHES[index % len(_DASHES)])


def reference(index: int, *, ceiling: bool) -> LineStyle:
    """The style of a known value."""
    return (
        LineStyle(LIGHT["ink"], "-")
        if ceiling
        else LineStyle(LIGHT["muted"], _REFERENCE_DASHES[index % len(_REFERENCE_DASHES)])
    )


def fill(kind: str) -> Fill:
    """The fill of a kind of outcome."""
    known = FILLS.get(kind, Fill("muted", "+++"))
    return Fill(LIGHT[known.colour], known.hatch)


def variables(colours: dict[str, str]) -> str:
    """Colours as custom properties of a style sheet."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
