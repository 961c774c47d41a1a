"""`eoh-esopt evaluate`: what a heuristic in a file is worth on held-out instances."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from eoh_esopt.cli.progress import followed
from eoh_esopt.reports.scores import Scores, as_csv, as_json, as_table
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.sets import named_sets
from operators.errors import UserError
from problems import registry


@click.command()
@click.argument("heuristic", type=click.Path(path_type=Path))
@click.option("--problem", required=True, help="Name from `eoh-esopt problem list`, or a .py file that defines one.")
@click.option("--split", help="train, val or test.  [default: test where the problem has one]")
@click.option("--size", "sizes", help="Sizes of the instances, such as 50,100.  [default: all published ones]")
@click.option("--instances", type=int, help="The first so many of each set.  [default: 64, or all there are]")
@click.option("--data", help="Folder of published instance files.  [default: drawn from documented seeds]")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for each instance.")
@click.option("--workers", type=int, help="Sandbox workers.  [default: one a core]")
@click.option("--isolation", default="best", show_default=True, help="Sandbox: best, required or none.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True, help="Output."
)
def evaluate(
    heuristic: Path,
    problem: str,
    split: str | None,
    sizes: str | None,
    instances: int | None,
    data: str | None,
    timeout: float,
    workers: int | None,
    isolation: str,
    form: str,
) -> None:
    """Score the heuristic in the file HEURISTIC, in the sandbox, instance by instance.

    Exit code 0 when every instance was solved, 1 when one was not.

    \b
    Examples:
      eoh-esopt evaluate runs/a/best_heuristic.py --problem tsp_construct --split test --size 50,100
      eoh-esopt evaluate mine.py --problem kp_construct --size 200 --format csv > values.csv
      eoh-esopt evaluate mine.py --problem my_problem.py --timeout 5 --workers 4
    """
    code = _read(heuristic)
    data = None if data is None else str(Path(data).resolve())  # workers have another working folder
    workers = (os.cpu_count() or 1) if workers is None else workers
    specs = list(named_sets(registry.absolute(problem), split, parse_sizes(sizes), instances, data))
    found = []
    for set_name, spec in specs:
        with Evaluator(spec, workers=workers, limits=Limits(wall_s=timeout), isolation=isolation) as evaluator:
            loaded = spec.build()
            outcomes = dict(followed(set_name, len(loaded.instances), evaluator.evaluate_each(code)))
        found.append(Scores.of(loaded, set_name, outcomes))
    _print(found, form)
    raise SystemExit(0 if all(scores.complete for scores in found) else 1)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"Cannot read the heuristic {path}: {error}. Give a Python file in UTF-8.") from error


def parse_sizes(sizes: str | None) -> list[int]:
    """The numbers of --size.

    Raises:
        UserError: they are none.
    """
    try:
        return [int(size) for size in sizes.split(",")] if sizes else []
    except ValueError as error:
        raise UserError(f"--size takes whole numbers with commas between them, not {sizes!r}.") from error


def _print(found: Sequence[Scores], form: str) -> None:
    if form == "json":
        click.echo(as_json(found))
    elif form == "csv":
        click.echo(as_csv(found))
    else:
        for scores in found:
            Console().print(as_table(scores))
