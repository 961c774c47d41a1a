"""`eoh-esopt sweep`: many runs that are to be compared, from one file."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.experiments.replicas import Replica
    from eoh_esopt.experiments.sweep import Cell, Sweep
    from eoh_esopt.experiments.sweep_run import SweepRun


@click.command()
@click.argument("name", metavar="SWEEP")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of all runs.  [default: runs/NAME OF THE SWEEP]")
@click.option("--workers", type=int, help="Cells at once.  [default: the file's; one a replica, or one for 4 cores]")
@click.option("--dry-run", is_flag=True, help="Only list the cells and how far they are.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Cells by name, or a part of it; repeatable.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting for all cells; repeatable.")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    name: str,
    out: Path | None,
    workers: int | None,
    dry_run: bool,
    only: tuple[str, ...],
    given: tuple[str, ...],
) -> None:
    """Run every cell of the sweep SWEEP: methods or other arms x tasks x budgets x seeds.

    SWEEP is a shipped one's name (`eoh-esopt preset list`) or the path of a TOML file. Each cell is a run in a folder
    of its own, OUT/TASK/ARM/seed-SEED. The command can be stopped at any moment and given again: finished cells stay as
    they are, others go on. A cell that fails says why, and the rest goes on.

    Exit code 0 when all cells are finished, 1 when some failed.

    \b
    Examples:
      eoh-esopt sweep smoke --out runs/smoke
      eoh-esopt sweep cpu --workers 4 --only tsp_construct
      eoh-esopt sweep my_sweep.toml --dry-run
      eoh-esopt sweep ablations --only 'tsp_construct/*/seed-1' --set model=./my-model
    """
    from eoh_esopt.experiments.replicas import places, threads_each
    from eoh_esopt.experiments.select import select, settings_of
    from eoh_esopt.experiments.settings_files import Place
    from eoh_esopt.experiments.sweep import load_sweep
    from eoh_esopt.experiments.sweep_run import SweepRun

    if workers is not None and workers < 1:
        raise UserError(f"--workers must be at least 1, not {workers}.")
    found = load_sweep(name)
    cells = select(found.cells(settings_of(given)), only)
    replicas = places(found.replicas, workers or found.workers, Place(found.file))
    threads = threads_each(len(replicas))  # not fewer replicas for fewer cells: results depend on the threads
    replicas = replicas[: len(cells)]
    out = Path("runs", found.file.stem) if out is None else out
    if dry_run:
        _show(SweepRun.of(cells, out), found, replicas, threads)
        return
    failed = _run(cells, out, replicas, threads)
    if failed:
        context.exit(1)


def _show(run: SweepRun, found: Sweep, replicas: Sequence[Replica], threads: int) -> None:
    from eoh_esopt.reports.sweep import cells_table

    console = Console()
    console.print(found.about, markup=False, highlight=False)
    console.print(cells_table(run))
    budget = sum(cell.config.budget for cell in run.cells)
    names = ", ".join(one.name for one in replicas)
    console.print(
        f"{len(run.cells)} cells, {run.count('finished')} finished; {budget} candidates in all; at once on {names}, "
        f"with {threads} threads each; folder {run.out}",
        highlight=False,
        soft_wrap=True,
    )


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """While the block runs, SIGTERM stops the cells as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(cells: Sequence[Cell], out: Path, replicas: Sequence[Replica], threads: int) -> bool:
    """Run the cells; whether some failed."""
    from eoh_esopt.experiments.sweep_run import SweepRun, claimed, run_cells
    from eoh_esopt.reports.sweep import watch_sweep

    with claimed(out), _terminate_as_interrupt(), watch_sweep(len(replicas)) as listener:
        run = SweepRun.of(cells, out)
        try:
            run_cells(run, replicas, threads, listener)
        except KeyboardInterrupt:
            listener.say("stopped; to go on, give the same command again")
            raise
    folder = shlex.quote(str(out))
    click.echo(f"{run.count('finished')} of {len(cells)} cells finished, {len(run.failures)} failed")
    for cell, why in run.failures.items():
        click.echo(f"  {cell}: {why.splitlines()[-1] if why else ''}")
    click.echo(f"Compare the arms:  eoh-esopt compare {folder}")
    click.echo(f"A report to send:  eoh-esopt report {folder} -o {folder}/report.html")
    return bool(run.failures)
