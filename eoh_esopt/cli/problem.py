"""The `problem` commands: which problems there are, what one asks for and what is known about it, and checking one."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from eoh_esopt.cli.options import TABLE_OR_JSON
from operators.prompts import stub
from problems import registry
from problems.base import Problem
from problems.references import Reference, ceiling_of, gap, references


@click.group("problem")
def problem() -> None:
    """List, show and check heuristic-design problems.

    \b
    Examples:
      eoh-esopt problem list
      eoh-esopt problem show tsp_construct
      eoh-esopt problem check my_problem.py
    """


@problem.command("list")
@TABLE_OR_JSON
def list_problems(form: str) -> None:
    """List the built-in problems with the best baseline and the ceiling of each on its training set.

    \b
    Examples:
      eoh-esopt problem list
      eoh-esopt problem list --format json
    """
    found = [registry.get(name) for name in registry.names()]
    if form == "json":
        click.echo(json.dumps([_summary(one) for one in found], indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("problem", "objective", "training set", "best baseline", "ceiling"):
        table.add_column(name, no_wrap=name == "problem")
    for one in found:
        known = references(one)
        ceiling = ceiling_of(known)
        table.add_row(
            one.name,
            f"{one.measure}, {'max' if one.maximise else 'min'}",
            _training_set(one),
            _named(_best_baseline(one, known)),
            _named(ceiling),
        )
    Console().print(table)


@problem.command("show")
@click.argument("name")
@click.option("--data", help="Folder of published instance files.  [default: drawn from documented seeds]")
@TABLE_OR_JSON
def show_problem(name: str, data: str | None, form: str) -> None:
    """Show what the problem NAME asks of a heuristic, its instance sets, and what is known about each.

    NAME is a name of the list, or the path of a .py file that defines a problem.

    \b
    Examples:
      eoh-esopt problem show tsp_construct
      eoh-esopt problem show kp_construct --format json
      eoh-esopt problem show my_problem.py
    """
    selection = {} if data is None else {"data": data}
    shown = registry.get(name, **selection)
    sets = {"all": shown} if shown.sets is None else _sets(name, shown, selection)
    if form == "json":
        click.echo(json.dumps({**_summary(shown), "sets": {key: _known(one) for key, one in sets.items()}}, indent=1))
        return
    console = Console()
    console.print(Text(shown.task.description))
    console.print(Syntax(stub(shown.task), "python", background_color="default", word_wrap=True))
    sense = "higher" if shown.maximise else "lower"
    console.print(
        f"\nMean {shown.measure} of what is known, {sense} is better, and gap to the ceiling:", highlight=False
    )
    known = {key: references(one) for key, one in sets.items()}
    console.print(_known_table(known, shown.maximise))
    for key, ceiling in ((key, ceiling_of(found)) for key, found in known.items()):
        if ceiling is not None:
            console.print(Text(f"{key}: {len(ceiling.values)} instances; {ceiling.name} by {ceiling.by}"))


@problem.command("check")
@click.argument("name")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for one heuristic.")
@click.option("--isolation", default="best", show_default=True, help="Sandbox: best, required or none.")
@click.option("--hostile", is_flag=True, help="Also run the corpus of hostile programs against it (minutes).")
def check(name: str, timeout: float, isolation: str, hostile: bool) -> None:
    """Say what is wrong with the problem in the file NAME before any model is called.

    Loads it, runs its template in the sandbox, prints the traceback if that fails, its time and a limit that fits,
    and tries whether its score can be cheated. Exit code 0 when nothing is wrong, else 1.

    \b
    Examples:
      eoh-esopt problem check my_problem.py
      eoh-esopt problem check my_problem.py --hostile
      eoh-esopt problem check tsp_construct
    """
    from eoh_esopt.testing.problem_check import Verdict, check_problem

    console = Console()
    name, sound = registry.absolute(name), True
    for finding in check_problem(name, timeout, isolation):
        sound = sound and finding.verdict is not Verdict.ERROR
        first, *rest = finding.found.split("\n")
        console.print(Text(f"{finding.verdict.value:8} {finding.what}: {first}"), soft_wrap=True)
        for line in rest:
            console.print(Text(f"         {line}"), soft_wrap=True)
    if sound and hostile:
        sound = _attack(name, isolation, console)
    raise SystemExit(0 if sound else 1)


def _attack(name: str, isolation: str, console: Console) -> bool:
    from eoh_esopt.sandbox.spec import ProblemSpec
    from eoh_esopt.testing import attack, programs

    sound, ran = True, 0
    findings = attack(ProblemSpec.named(name), isolation=isolation)
    for finding in track(findings, "Hostile programs", len(programs()), console=Console(stderr=True)):
        ran += not finding.skipped
        for broken in finding.broken:
            sound = False
            console.print(Text(f"{'ERROR':8} hostile {finding.program.name}: {broken}"), soft_wrap=True)
    left = f", {len(programs()) - ran} left out: the walls they attack are not there" if ran < len(programs()) else ""
    if sound:
        console.print(f"{'ok':8} {ran} hostile programs contained{left}", highlight=False, soft_wrap=True)
    return sound


def _sets(name: str, shown: Problem, selection: dict[str, Any]) -> dict[str, Problem]:
    """The training set and all published test sets."""
    assert shown.sets is not None
    sizes = [("train", size) for size in shown.sets.sizes("train")]
    sizes += [("test", size) for size in shown.sets.sizes("test")]
    return {f"{split}{size}": registry.get(name, split=split, size=size, **selection) for split, size in sizes}


def _summary(one: Problem) -> dict[str, Any]:
    return {
        "problem": one.name,
        "description": one.task.description,
        "function": one.task.function,
        "arguments": list(one.task.arguments),
        "measure": one.measure,
        "maximise": one.maximise,
        "instances": len(one.instances),
        **_known(one),
    }


def _known(one: Problem) -> dict[str, Any]:
    known = references(one)
    ceiling = ceiling_of(known)
    return {
        "instances": len(one.instances),
        "references": {reference.name: reference.mean for reference in known},
        "ceiling": None if ceiling is None else {"name": ceiling.name, "mean": ceiling.mean, "by": ceiling.by},
    }


def _training_set(one: Problem) -> str:
    size = f" of size {one.sets.default_size}" if one.sets is not None else ""
    return f"{len(one.instances)}{size}"


def _best_baseline(one: Problem, known: tuple[Reference, ...]) -> Reference | None:
    means = {reference.mean: reference for reference in known if not reference.ceiling and reference.mean is not None}
    if not means:
        return None
    return means[max(means) if one.maximise else min(means)]


def _named(reference: Reference | None) -> str:
    return "" if reference is None or reference.mean is None else f"{reference.name} {reference.mean:.4f}"


def _known_table(known: dict[str, tuple[Reference, ...]], maximise: bool) -> Table:
    """A row for each method, a column for each set."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for key in known:
        table.add_column(key, justify="right")
    for name in dict.fromkeys(reference.name for found in known.values() for reference in found):
        table.add_row(name, *(_cell(found, name, maximise) for found in known.values()))
    return table


def _cell(found: tuple[Reference, ...], name: str, maximise: bool) -> str:
    """A method's mean on one set, and in brackets how far that is from the ceiling."""
    mean = next((reference.mean for reference in found if reference.name == name), None)
    ceiling = ceiling_of(found)
    if mean is None:
        return ""
    if ceiling is None or not ceiling.mean or ceiling.name == name:
        return f"{mean:.4f}"
    return f"{mean:.4f} ({gap(mean, ceiling.mean, maximise):.1%})"
