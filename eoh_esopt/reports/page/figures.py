"""The figures, as SVG and PNG. The same data gives the same bytes with the same release of matplotlib.

Figures hold everything that is needed to read them away from the page but the caption, which says what spread is shown
and of how many runs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.reports.page import style
from eoh_esopt.reports.page.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_WIDTH = 4.6
_DPI = 220
_LONG_LABEL = 24
_SHEET = re.compile(r"<defs>\s*<style.*?</defs>", re.DOTALL)
"""Style sheet of a picture; its one rule would hold for a whole page, which has it already."""


@dataclass(frozen=True)
class Figure:
    """One drawn figure.

    Attributes:
        name: of its files.
        caption: what it shows, the number of runs and the meaning of the spread.
        svg: a whole SVG file.
        png: a whole PNG file.
    """

    name: str
    caption: str
    svg: str
    png: bytes

    @property
    def inline(self) -> str:
        """The picture as part of a page: colours by name, no identifier that another picture has, no addresses."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r' xmlns(:\w+)?="[^"]*"', "", body, count=2)
        body = re.sub(r' (width|height)="[\d.]+pt"', "", body, count=2)
        body = re.sub(_SHEET, "", body, count=1)
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        body = re.sub(r'(url\(#|href="#)', rf"\g<1>{self.name}-", body)
        for name, value in style.LIGHT.items():
            body = body.replace(value, f"var(--{name})")
        return body.replace("<svg", f'<svg role="img" focusable="false" aria-labelledby="{self.name}-caption"', 1)


@dataclass(frozen=True)
class Line:
    """One series of a plot.

    Attributes:
        label: for the legend; empty for none.
        x, y: points.
        low, high: edges of the band around it; None for none.
        style: which series' style it has.
        thin: whether it is drawn as a single run among others.
        marks: x of events on the line, drawn as crosses at the foot of the plot.
    """

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    style: int
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    thin: bool = False
    marks: Sequence[float] = ()


@dataclass(frozen=True)
class Plot:
    """One set of axes.

    Attributes:
        title: above it: what is measured.
        lines: its series.
        references: known values by name, drawn across.
        ceiling: which of them nothing is known to beat.
        bottom: of the y axis; None for what the data need.
        points: whether each value stands for itself, not for all x up to the next.
    """

    title: str
    lines: Sequence[Line]
    references: Mapping[str, float] | None = None
    ceiling: str | None = None
    bottom: float | None = None
    points: bool = False


def plots(name: str, caption: str, x_label: str, panels: Sequence[Plot], *, height: float) -> Figure:
    """Plots above each other with one x axis and one legend.

    Args:
        height: of one of them, in inches.
    """

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for panel, one in zip(panels, axes, strict=True):
            _plot(one, panel)
        axes[-1].set_xlabel(x_label)
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
        _legend(canvas, list(axes))

    labels = [line.label for panel in panels for line in panel.lines] + [
        name for panel in panels for name in panel.references or ()
    ]
    return _drawn(name, caption, len(panels) * height + _legend_height(labels), paint)


def bars(name: str, caption: str, panels: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Figure:
    """Stacked horizontal bars of shares.

    Args:
        panels: counts by panel, bar and kind; kinds are stacked in the order of `style.FILLS`.
    """
    there = {kind for rows in panels.values() for counts in rows.values() for kind in counts}
    kinds = [kind for kind in style.FILLS if kind in there] + sorted(there - style.FILLS.keys())
    rows = [len(one) for one in panels.values()]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        for one, (title, counts) in zip(axes, panels.items(), strict=True):
            _stack(one, title, counts, kinds)
        axes[-1].set_xlim(0, 100)
        axes[-1].set_xlabel("candidates, %")
        _legend(canvas, [axes[0]])

    return _drawn(name, caption, sum(0.34 * count + 0.3 for count in rows) + 0.5 + _legend_height(kinds), paint)


def _plot(axes: Axes, panel: Plot) -> None:
    axes.set_title(panel.title)
    for line in panel.lines:
        _line(axes, line, points=panel.points)
    for index, (name, value) in enumerate((panel.references or {}).items()):
        colour, dash = style.reference(index, ceiling=name == panel.ceiling)
        axes.axhline(
            value, color=colour, linestyle=dash, linewidth=1, label=_reference_label(name, value, panel.ceiling)
        )
    if panel.bottom is not None:
        axes.set_ylim(bottom=panel.bottom)


def _line(axes: Axes, line: Line, *, points: bool) -> None:
    colour, dash = style.series(line.style)
    looks: dict[str, Any] = {"color": colour, "linestyle": dash, "label": plain(line.label) or "_"}
    if line.thin:
        looks |= {"linewidth": 0.9, "alpha": 0.75}
    if points:
        axes.plot(line.x, line.y, marker="o", markersize=2.4, **looks)
    else:
        axes.step(line.x, line.y, where="post", **looks)
    if line.low is not None and line.high is not None:
        axes.fill_between(
            line.x, line.low, line.high, step=None if points else "post", color=colour, alpha=0.16, linewidth=0
        )
    if len(line.marks):
        axes.plot(
            line.marks,
            np.zeros(len(line.marks)),
            "x",
            color=colour,
            clip_on=False,
            markersize=4,
            transform=axes.get_xaxis_transform(),
        )


def _stack(axes: Axes, title: str, rows: Mapping[str, Mapping[str, int]], kinds: Sequence[str]) -> None:
    axes.set_title(plain(title))
    axes.grid(axis="y", visible=False)
    names = list(rows)
    totals = np.array([max(sum(rows[name].values()), 1) for name in names], dtype=np.float64)
    left = np.zeros(len(names))
    for kind in kinds:
        width = np.array([rows[name].get(kind, 0) for name in names]) / totals * 100
        colour, hatch = style.fill(kind)
        axes.barh(
            names,
            width,
            left=left,
            height=0.72,
            label=kind,
            facecolor=colour,
            hatch=hatch,
            edgecolor=style.LIGHT["paper"],
            linewidth=0.5,
        )
        left += width
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0, labelcolor=style.LIGHT["ink"])


def _reference_label(name: str, value: float, ceiling: str | None) -> str:
    return f"{name} {value:.4f}" + (" (ceiling)" if name == ceiling else "")


def _legend(canvas: Canvas, axes: Sequence[Axes]) -> None:
    """One legend for all axes, below them."""
    entries: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        canvas.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower left",
            ncols=_legend_columns(list(entries)),
            labelcolor=style.LIGHT["ink"],
            columnspacing=1.4,
            borderaxespad=0,
        )


def _legend_columns(labels: Sequence[str]) -> int:
    return 1 if any(len(label) > _LONG_LABEL for label in labels) else 2


def _legend_height(labels: Sequence[str]) -> float:
    distinct = list(dict.fromkeys(filter(None, labels)))
    return 0.17 * -(-len(distinct) // _legend_columns(distinct)) if distinct else 0.0


def _drawn(name: str, caption: str, height: float, paint: Callable[[Canvas], None]) -> Figure:
    from matplotlib import rc_context  # half a second that only a report waits for
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with rc_context(style.RC):
        canvas = Canvas(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasAgg(canvas)
        paint(canvas)
        svg, png = io.StringIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        canvas.savefig(png, format="png", dpi=_DPI, metadata={"Software": None})
    return Figure(name, caption, svg.getvalue(), png.getvalue())
