"""`eoh-esopt diagnose`: whether a run is learning, or whether it is noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from eoh_esopt.cli.options import TABLE_FORMATS
from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.experiments.diagnostics import Diagnosis
    from eoh_esopt.experiments.run_record import RunRecord
    from eoh_esopt.reports.page.tables import Table

_TABLES = ("learning", "rewards", "updates", "generations", "operators", "time")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@TABLE_FORMATS
@click.option("--table", "names", multiple=True, type=click.Choice(_TABLES), help="Only this table; repeatable.")
@click.option("--weights", type=click.Path(path_type=Path), help="Folder of the model before the runs, for comparison.")
def diagnose(runs: tuple[Path, ...], form: str, names: tuple[str, ...], weights: Path | None) -> None:
    """Say what the logs of RUN... show of learning: rewards, updates, candidates and time. Unfinished runs are fine.

    How far updates move the weights stands beside how far they would on random rewards, for sizes alone do not tell one
    from the other.

    \b
    Examples:
      eoh-esopt diagnose runs/a
      eoh-esopt diagnose runs/a runs/shuffled --table learning --table operators
      eoh-esopt diagnose runs/a --weights ./Llama-3.1-8B-Instruct -f md > diagnosis.md
      eoh-esopt diagnose runs/* --table updates -f csv > updates.csv
    """
    from eoh_esopt.experiments.diagnostics import diagnose as diagnosis_of
    from eoh_esopt.experiments.run_record import read_run
    from eoh_esopt.reports.diagnosis import together
    from eoh_esopt.reports.page.tables import as_csv

    records = [read_run(run, finished=False) for run in runs]
    found = [diagnosis_of(record, _rms(record, weights)) for record in records]
    shown = [_chosen(record, one, names or _TABLES) for record, one in zip(records, found, strict=True)]
    if form == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=1))
    elif form == "csv":
        names_of_runs = [record.folder.name for record in records]
        click.echo("\n".join(map(as_csv, together(names_of_runs, shown))), nl=False)
    else:
        for record, one, tables in zip(records, found, shown, strict=True):
            _print(record, one, tables, form)


def _rms(record: RunRecord, folder: Path | None) -> float | None:
    """Root mean square of the weights that the run moves, where a model to read them from is given."""
    from eoh_esopt.experiments.weights_rms import weights_rms

    elements = record.facts["model"].get("scope_elements")
    if folder is None or record.config.scope != "full":
        return None
    if elements is None:
        raise UserError(f"The log in {record.folder} does not say how many weights moved. Leave out --weights.")
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"Reading {folder.name}", total=None)

        def follow(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return weights_rms(folder, elements, lowrank=record.config.lowrank is not None, follow=follow)


def _chosen(record: RunRecord, diagnosis: Diagnosis, names: Sequence[str]) -> list[Table]:
    from eoh_esopt.reports.diagnosis import tables

    return [table for table in tables(diagnosis, record.scale) if table.name in names]


def _print(record: RunRecord, diagnosis: Diagnosis, tables: Sequence[Table], form: str) -> None:
    """One run's tables, and what they mean."""
    from eoh_esopt.reports.diagnosis import as_rich, readings
    from eoh_esopt.reports.page.tables import as_markdown

    if form == "md":
        click.echo("\n".join([f"# {record.folder.name}\n", *map(as_markdown, tables)]))
        click.echo("\n\n".join(readings(diagnosis)) + "\n")
        return
    console = Console()
    console.rule(Text(str(record.folder)))
    for table in tables:
        console.print(as_rich(table), "")
    for line in readings(diagnosis):
        console.print(line, markup=False, highlight=False)
