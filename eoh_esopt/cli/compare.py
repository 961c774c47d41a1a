"""`eoh-esopt compare`: whether one arm of an experiment is better than another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from eoh_esopt.cli.evaluate import parse_sizes
from eoh_esopt.cli.progress import followed
from eoh_esopt.engine.events import write_atomically
from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.experiments.comparison_records import Comparison
    from eoh_esopt.experiments.held_out import HeldOut
    from eoh_esopt.experiments.run_record import RunRecord

_HELD_OUT_ONLY = ("sizes", "instances", "data", "timeout", "isolation")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", help="Arm that the others are held against.  [default: eoh, else sample, else the first]")
@click.option(
    "--budget-of",
    default="candidates",
    show_default=True,
    help="What has to be equal: candidates, model_calls, evaluations or tokens.",
)
@click.option("--force", is_flag=True, help="Compare arms of unequal budgets; they are labelled so.")
@click.option("--partial", is_flag=True, help="Compare what is finished; what is not is named in the notes.")
@click.option("--two-sided", is_flag=True, help="Test for a difference either way.  [default: for a better arm]")
@click.option("--held-out", "split", help="Score the best heuristics on this split too: test or val.")
@click.option("--size", "sizes", help="With --held-out: sizes of the instances.  [default: all published ones]")
@click.option("--instances", type=int, help="With --held-out: the first so many of each set.  [default: 64, or all]")
@click.option("--data", help="With --held-out: folder of published files.  [default: what the runs used]")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="With --held-out: seconds an instance.")
@click.option("--isolation", default="best", show_default=True, help="With --held-out: best, required or none.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--power", type=float, default=0.8, show_default=True, help="Of the repetitions said to be needed.")
@click.option("--resamples", type=int, default=9999, show_default=True, help="Draws of the bootstrap.")
@click.option("--seed", type=int, default=2024, show_default=True, help="Of the draws.")
@click.option("--workers", type=int, help="Processes for draws and sandbox.  [default: one a core]")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "md", "csv", "json"]),
    help="Output.  [default: table; with -o what the file's name ends with]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the output.")
@click.pass_context
def compare(
    context: click.Context,
    /,
    runs: tuple[Path, ...],
    baseline: str | None,
    budget_of: str,
    force: bool,
    partial: bool,
    two_sided: bool,
    split: str | None,
    sizes: str | None,
    instances: int | None,
    data: str | None,
    timeout: float,
    isolation: str,
    confidence: float,
    power: float,
    resamples: int,
    seed: int,
    workers: int | None,
    form: str | None,
    output: Path | None,
) -> None:
    """Compare RUNS: folders of runs, or folders that hold such, as a sweep's.

    Runs that differ in nothing but the seed are an arm. Arms of one task and budget are held against the baseline, seed
    by seed where both have the same seeds. What cannot be compared is refused: exit code 2 and one sentence.

    \b
    Examples:
      eoh-esopt compare runs/sweep
      eoh-esopt compare runs/eoh-* runs/esopt-* --baseline eoh -f md -o comparison.md
      eoh-esopt compare runs/sweep --partial
      eoh-esopt compare runs/sweep --held-out test --size 50,100 --instances 64
      eoh-esopt compare runs/sweep --budget-of tokens --force --two-sided -f json
    """
    from eoh_esopt.experiments.comparison import compare_runs
    from eoh_esopt.experiments.find_runs import find_runs

    _refuse_alone(context, split)
    workers = (os.cpu_count() or 1) if workers is None else workers
    selected = parse_sizes(sizes)
    found = find_runs(runs, partial=partial)

    def compared(held_out: Sequence[HeldOut]) -> Comparison:
        return compare_runs(
            found.runs,
            held_out=held_out,
            missing=found.missing,
            baseline=baseline,
            budget_of=budget_of,
            force=force,
            alternative="two-sided" if two_sided else "better",
            confidence=confidence,
            power=power,
            resamples=resamples,
            seed=seed,
            workers=workers,
        )

    comparison = compared(())
    if split is not None:  # once all is known to be comparable: scoring takes long
        comparison = compared(_scored(found.runs, split, selected, instances, data, timeout, workers, isolation))
    _print(comparison, form, output)


def _refuse_alone(context: click.Context, split: str | None) -> None:
    """Options of --held-out without it are a mistake."""
    for name in _HELD_OUT_ONLY:
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if split is None and given:
            label = "size" if name == "sizes" else name
            raise UserError(f"--{label} belongs to --held-out. Add --held-out test, or leave it out.")


def _scored(
    runs: Sequence[RunRecord],
    split: str,
    sizes: Sequence[int],
    instances: int | None,
    data: str | None,
    timeout: float,
    workers: int,
    isolation: str,
) -> Sequence[HeldOut]:
    from eoh_esopt.experiments.held_out import Selection, score_held_out

    if split == "train":
        raise UserError("--held-out takes test or val: train is what the runs were selected by.")
    folder = None if data is None else str(Path(data).resolve())  # workers have another working folder
    return score_held_out(
        runs, Selection(split, tuple(sizes), instances, folder, timeout, workers, isolation), follow=followed
    )


def _print(comparison: Comparison, form: str | None, output: Path | None) -> None:
    from eoh_esopt.experiments.comparison_tables import as_csv, as_json, as_markdown, as_table

    if output is None and form in (None, "table"):
        Console().print(as_table(comparison))
        return
    write = {"md": as_markdown, "csv": as_csv, "json": as_json}.get(_file_form(form, output))
    if write is None:
        raise UserError(f"Tables are for the terminal. For {output} choose -f md, csv or json.")
    text = write(comparison)
    if output is None:
        click.echo(text)
    else:
        write_atomically(output, text + "\n")


def _file_form(form: str | None, output: Path | None) -> str:
    """What was asked for, else what the file's name says."""
    return form or ("" if output is None else output.suffix.removeprefix("."))
