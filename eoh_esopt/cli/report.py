"""`eoh-esopt report`: one page on runs, to read and to send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.reports.page.build import Report


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="File for the page, such as a.html.")
@click.option("--tables", type=click.Path(path_type=Path), help="Folder for each table as .md, .csv and .json.")
@click.option("--figures", type=click.Path(path_type=Path), help="Folder for each figure as .svg and .png.")
def report(runs: tuple[Path, ...], out: Path, tables: Path | None, figures: Path | None) -> None:
    """Write a page on RUNS: results beside what is known, curves, failures, the best heuristic, how to reproduce.

    RUN is the folder of a run or one with runs anywhere below it. Runs are grouped by task, and those that differ in
    nothing but the seed make one arm; unfinished ones are shown as such. The page is one file that loads nothing.

    \b
    Examples:
      eoh-esopt report runs/a -o report.html
      eoh-esopt report runs -o report.html --tables tables --figures figures
      eoh-esopt report runs/eoh-1 runs/eoh-2 runs/esopt-1 runs/esopt-2 -o both.html
    """
    _check(out, tables, figures)
    made = _build(runs)
    from eoh_esopt.engine.events import write_atomically
    from eoh_esopt.reports.page.build import page, write_figures, write_tables

    write_atomically(out, page(made))
    click.echo(f"Wrote {out}: {len(made.runs)} runs of {len(made.sections)} tasks")
    for folder, write, what in ((tables, write_tables, "tables"), (figures, write_figures, "figures")):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            click.echo(f"Wrote {write(made, folder)} {what} to {folder}")


def _check(out: Path, *folders: Path | None) -> None:
    """Look at where the files go before the runs are read.

    Raises:
        UserError: they cannot go there.
    """
    if out.is_dir():
        raise UserError(f"{out} is a folder. Give the page's file by -o, such as {out / 'report.html'}.")
    if not out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {out.parent} for the page. Make it, or give another -o.")
    for folder in folders:
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file, not a folder. Give another one.")


def _build(places: tuple[Path, ...]) -> Report:
    from eoh_esopt.experiments.find_runs import run_folders
    from eoh_esopt.reports.page.build import build
    from eoh_esopt.reports.page.data import read_runs

    folders = run_folders(places)
    with _progress() as progress:
        reading = progress.add_task("reading runs", total=len(folders))
        found = read_runs(folders, lambda: progress.advance(reading))
        drawing = progress.add_task("", total=None)
        return build(found, lambda what: progress.update(drawing, description=what))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Bars on the error output, where it is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress
