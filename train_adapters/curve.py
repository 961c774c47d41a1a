"""`eoh-esopt training-curve`: what trainings have learnt, side by side, as a figure and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.reports.page.figures import Line

_HEIGHT = 2.2


@dataclass(frozen=True)
class Curve:
    """What the log of one training says.

    Attributes:
        name: of its folder.
        validation: evaluations on the validation split, in their order.
        test: the one on the test split; None before the end.
        generations: the generations so far.
    """

    name: str
    validation: Sequence[dict[str, Any]]
    test: dict[str, Any] | None
    generations: Sequence[dict[str, Any]]


def read_curve(folder: Path) -> Curve:
    """The curve of a training that has begun.

    Raises:
        UserError: the folder holds none, or nothing was evaluated yet.
    """
    from eoh_esopt.engine.events import read_events

    by_kind: dict[str, list[dict[str, Any]]] = {}
    for event in read_events(folder):
        by_kind.setdefault(str(event["event"]), []).append(dict(event))
    evaluations = [one for one in by_kind.get("evaluation", []) if one["mean"] is not None]
    validation = [one for one in evaluations if one["split"] == "val"]
    if not validation:
        raise UserError(f"{folder} has no evaluation on the validation split. Give the folder of a training.")
    test = [one for one in evaluations if one["split"] == "test"]
    return Curve(folder.name, validation, test[-1] if test else None, by_kind.get("generation", []))


@click.command("training-curve")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The figure: a name that ends in .svg or .png.")
def training_curve(runs: tuple[Path, ...], out: Path | None) -> None:
    """Show what the trainings in RUNS have learnt: reward on the validation split by generation, with its interval.

    \b
    Examples:
      eoh-esopt training-curve runs/guess
      eoh-esopt training-curve runs/floor runs/constant runs/to-zero -o curve.svg
    """
    from train_adapters.pass_at_k_report import check_plot

    check_plot(out)
    curves = [read_curve(run) for run in runs]
    _print(curves)
    if out is not None:
        _draw(curves, out)
        click.echo(f"Figure: {out}")


def _print(curves: Sequence[Curve]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption="mean reward, with its 95 % interval over tasks")
    table.add_column("training", overflow="fold")
    table.add_column("episodes", justify="right")
    for name in ("val before", "val last", "test"):
        table.add_column(name, justify="right", min_width=len("(0.125-0.312)"))
    for one in curves:
        table.add_row(
            one.name,
            f"{sum(generation['episodes'] for generation in one.generations):,}",
            _cell(one.validation[0]),
            _cell(one.validation[-1]),
            "-" if one.test is None else _cell(one.test),
        )
    Console().print(table)


def _cell(evaluation: dict[str, Any]) -> str:
    if evaluation["low"] is None:
        return f"{evaluation['mean']:.3f}"
    return f"{evaluation['mean']:.3f} ({evaluation['low']:.3f}-{evaluation['high']:.3f})"


def _draw(curves: Sequence[Curve], out: Path) -> None:
    from eoh_esopt.engine.events import write_atomically
    from eoh_esopt.reports.page.figures import Plot, plots

    validation = Plot(
        "reward on the validation split",
        [_evaluated(one, style) for style, one in enumerate(curves)],
        bottom=0.0,
        points=True,
    )
    training = Plot(
        "mean reward under the directions, in training",
        [_trained(one, style) for style, one in enumerate(curves)],
        bottom=0.0,
        points=True,
    )
    caption = "Mean reward by generation; bands are 95 % intervals over tasks."
    figure = plots(out.stem, caption, "generation", [validation, training], height=_HEIGHT)
    write_atomically(out, figure.svg if out.suffix == ".svg" else figure.png)


def _evaluated(curve: Curve, style: int) -> Line:
    from eoh_esopt.reports.page.figures import Line

    x = np.array([one["generation"] + 1.0 for one in curve.validation])
    y, low, high = (
        np.array([one["mean"] if one[edge] is None else one[edge] for one in curve.validation])
        for edge in ("mean", "low", "high")
    )
    return Line(curve.name, x, y, style, low, high)


def _trained(curve: Curve, style: int) -> Line:
    from eoh_esopt.reports.page.figures import Line

    known = [one for one in curve.generations if one["reward"] is not None]
    x = np.array([one["generation"] + 1.0 for one in known])
    return Line("", x, np.array([one["reward"] for one in known]), style)
