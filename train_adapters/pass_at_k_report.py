"""Mean@k and Pass@k as a table on the terminal, and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from eoh_esopt.engine.events import write_atomically
from operators.errors import UserError
from train_adapters.evaluation import CONFIDENCE, Evaluation
from train_adapters.pass_at_k import CurvePoint, Estimate

if TYPE_CHECKING:
    from eoh_esopt.reports.page.figures import Line, Plot

_KINDS = (".svg", ".png")
_HEIGHT = 2.4
_Series = tuple[str, Callable[[CurvePoint], Estimate]]
_SUCCESSES: tuple[_Series, ...] = (
    ("Mean@k", lambda point: point.mean_at),
    ("Pass@k", lambda point: point.pass_at),
)
_REWARDS: tuple[_Series, ...] = (
    ("mean reward", lambda point: point.mean_reward),
    ("best of k", lambda point: point.best_reward),
)


def print_curve(console: Console, evaluation: Evaluation, points: Sequence[CurvePoint]) -> None:
    """A table of the points for k = 1, 2, 4, ... and the last k. Rewards have columns where they are not all 0 or 1."""
    if not points:
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=_caption(evaluation, points))
    columns = _columns(evaluation)
    for name in ("k", *(name for name, _ in columns), "tasks"):
        table.add_column(name, justify="right")
    for point in _shown(points):
        table.add_row(str(point.k), *(_cell(of(point)) for _, of in columns), str(point.tasks))
    console.print(table)


def _columns(evaluation: Evaluation) -> tuple[_Series, ...]:
    rewards = {reward for of_task in evaluation.outcomes.values() for reward in of_task}
    return _SUCCESSES if rewards <= {0.0, 1.0, None} else _SUCCESSES + _REWARDS


def _shown(points: Sequence[CurvePoint]) -> Iterator[CurvePoint]:
    for point in points:
        if point.k & (point.k - 1) == 0 or point is points[-1]:  # a power of two has one bit
            yield point


def _cell(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} ({estimate.low:.3f}-{estimate.high:.3f})"


def _caption(evaluation: Evaluation, points: Sequence[CurvePoint]) -> str:
    """What the figures are of."""
    left_out = sum(reward is None for rewards in evaluation.outcomes.values() for reward in rewards)
    fewer = f"; {left_out} episodes that failed by no fault of the agent's are left out" if left_out else ""
    return (
        f"{points[0].tasks} tasks of {evaluation.split}, {len(evaluation.repeats)} episodes each{fewer}. "
        f"A success is a reward of at least {evaluation.success:g}. {CONFIDENCE:.0%} intervals over tasks."
    )


def check_plot(path: Path | None) -> None:
    """Refuse a file that no figure can be written to, before anything is played.

    Raises:
        UserError: its name does not end in a kind of picture, or its folder is not there.
    """
    if path is None:
        return
    if path.suffix not in _KINDS:
        raise UserError(f"{path} is no name of a figure. Let it end in {' or '.join(_KINDS)}.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent} to write {path.name} to. Make it first.")


def write_plot(path: Path, evaluation: Evaluation, points: Sequence[CurvePoint]) -> None:
    """Draw the curve, with its intervals as bands.

    Raises:
        UserError: nothing counts, so there is nothing to draw; or the file cannot be written.
    """
    from eoh_esopt.reports.page.figures import plots  # matplotlib takes half a second that only a figure waits for

    if not points:
        raise UserError(f"No episode counts, so nothing is drawn to {path}. See the endings in the line above.")
    panels = [_panel("successes", _SUCCESSES, points)]
    if len(_columns(evaluation)) > len(_SUCCESSES):
        panels.append(_panel("reward", _REWARDS, points))
    figure = plots(path.stem, _caption(evaluation, points), "k", panels, height=_HEIGHT)
    write_atomically(path, figure.svg if path.suffix == ".svg" else figure.png)


def _panel(title: str, series: Sequence[_Series], points: Sequence[CurvePoint]) -> Plot:
    from eoh_esopt.reports.page.figures import Plot

    lines = [_line(name, [of(point) for point in points], style) for style, (name, of) in enumerate(series)]
    return Plot(title, lines, bottom=0.0 if title == "successes" else None, points=True)


def _line(name: str, estimates: Sequence[Estimate], style: int) -> Line:
    from eoh_esopt.reports.page.figures import Line

    values = np.array([one.value for one in estimates])
    low, high = (
        np.array([one.value if edge is None else edge for one, edge in zip(estimates, edges, strict=True)])
        for edges in ([one.low for one in estimates], [one.high for one in estimates])
    )
    return Line(name, np.arange(1.0, len(values) + 1), values, style, low, high)
