"""Compute the reference values in problems/data: the optimum of each instance or the best known, and the baselines."""

from __future__ import annotations

import copy
import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import numpy as np
import solvers
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from solvers import Solved

from operators.errors import UserError
from problems import aco_bpp, aco_cvrp, asp_construct, kp_construct, registry
from problems.base import Problem
from problems.references import DATA
from problems.tours import distance_matrix

DIGITS = 9

EXAMPLES = """
\b
Examples:
  python scripts/ceilings.py                                    all problems: train and the published test sizes
  python scripts/ceilings.py tsp_construct --size 100 --jobs 8
  python scripts/ceilings.py aco_cvrp --seconds 60 --seed 1     look for better routes
  python scripts/ceilings.py kp_construct --split val           a set that is not done by default
"""

Solve = Callable[[Any, float, int], Solved]
"""(instance, seconds, seed) -> its value."""


@dataclass(frozen=True)
class Method:
    """How the ceilings of a problem are found.

    Attributes:
        name: what the ceiling is, where it is not proven to be the optimum.
        by: how it was obtained; "{seconds}" stands for the time an instance had.
        solve: finds it.
        bound: whether an unproven value bounds the optimum, so that the worse one says more.
        packages: which of the packages in the extra `solvers` it needs.
    """

    name: str
    by: str
    solve: Solve
    bound: bool = False
    packages: tuple[str, ...] = ("joblib",)


def methods() -> dict[str, Method]:
    """The method of each problem."""
    routing = ("joblib", "pyvrp")
    pyvrp = f"PyVRP {version('pyvrp')}" if importlib.util.find_spec("pyvrp") else "PyVRP"
    highs = f"HiGHS of SciPy {version('scipy')}"
    tours = Method("best known", f"{pyvrp} and {highs}, {{seconds}} an instance", _tour, packages=routing)
    return {
        "tsp_construct": tours,
        "kp_construct": Method("upper bound", highs, _knapsack, bound=True),
        "asp_construct": Method("best known", "Romera-Paredes et al., FunSearch, Nature 625 (2024)", _admissible),
        "aco_tsp": tours,
        "aco_cvrp": Method("best known", f"{pyvrp}, {{seconds}} an instance", _routes, packages=routing),
        "aco_bpp": Method("lower bound", f"{highs}, arc-flow model, {{seconds}} an instance", _bins, bound=True),
    }


def _tour(instance: Any, seconds: float, seed: int) -> Solved:
    return solvers.tour(distance_matrix(instance.points), seconds, seed)


def _knapsack(instance: Any, seconds: float, seed: int) -> Solved:
    return solvers.knapsack(instance.weights, instance.values, instance.capacity + kp_construct.TOLERANCE, seconds)


def _admissible(instance: Any, seconds: float, seed: int) -> Solved:
    """Known constants. No two vectors have the same support, so a set of comb(n, w) cannot be beaten."""
    size = {12: 792, 15: 3003, 21: 43596, 24: 237984}[instance.n]
    return Solved(float(size), size == math.comb(instance.n, instance.w))


def _routes(instance: Any, seconds: float, seed: int) -> Solved:
    demands = np.asarray(instance.demands[1:], dtype=np.int64)
    return solvers.vehicle_routes(distance_matrix(instance.points), demands, aco_cvrp.CAPACITY, seconds, seed)


def _bins(instance: Any, seconds: float, seed: int) -> Solved:
    return solvers.bins(instance.sizes, aco_bpp.CAPACITY, seconds, seed)


@dataclass(frozen=True)
class Selection:
    """Which instances to do, and how long to try; see the options of the command."""

    splits: tuple[str, ...]
    size: int | None
    instances: int | None
    seconds: float | None
    jobs: int
    seed: int
    folder: Path


def sets_of(name: str, selection: Selection) -> list[tuple[str, int]]:
    """The published sets that are selected, train first; a size nobody published too where it is asked for."""
    every: Iterable[tuple[str, int]] = importlib.import_module(f"problems.{name}").SETS.published
    if name == "asp_construct":
        every = [*every, *(("test", size) for size in asp_construct.WEIGHT_OF)]
    order = ("train", "test", "val")
    found = sorted({one for one in every if one[0] in selection.splits}, key=lambda one: (order.index(one[0]), one[1]))
    if selection.size is None:
        return found
    return [one for one in found if one[1] == selection.size] or [(selection.splits[0], selection.size)]


def update(name: str, selection: Selection, progress: Progress) -> None:
    """Do the selected sets of one problem and store what was found, set by set."""
    method = methods()[name]
    path = selection.folder / f"{name}.json"
    stored = json.loads(path.read_text()) if path.is_file() else {"sets": {}, "instances": {}}
    for split, size in sets_of(name, selection):
        problem = registry.get(name, split=split, size=size, n_instances=selection.instances)
        seconds = size / 10 if selection.seconds is None else selection.seconds
        keys = [problem.key(instance) for instance in problem.instances]
        known = {place: stored["instances"].get(key, {}) for place, key in enumerate(keys)}
        todo = {place: entry for place, entry in known.items() if not _done(entry, problem)}
        bar = progress.add_task(f"{name} {split}{size}", total=len(todo))
        try:
            for place, entry in _computed(problem, todo, method, seconds, selection):
                stored["instances"][keys[place]] = merge(known[place], entry, problem, method)
                progress.advance(bar)
        finally:  # an interrupted run keeps what it has
            tried = "{seconds}" in method.by and any(not entry.get("proven", False) for entry in todo.values())
            summarise(stored, name, (split, size), len(keys), seconds if tried else 0.0)
            write(path, stored, method)


def _done(entry: dict[str, Any], problem: Problem) -> bool:
    return entry.get("proven", False) and entry.keys() >= {"ceiling", *problem.baselines}


def _computed(
    problem: Problem, todo: dict[int, dict[str, Any]], method: Method, seconds: float, selection: Selection
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Entries of the instances at those places, in the order they are ready."""
    from joblib import Parallel, delayed

    jobs = []
    for place, entry in todo.items():
        one = copy.copy(problem)
        one.instances = [problem.instances[place]]
        jobs.append(delayed(_entry)(place, one, entry, method.solve, seconds, selection.seed))
    yield from Parallel(n_jobs=selection.jobs, return_as="generator_unordered")(jobs)


def _entry(
    place: int, problem: Problem, old: dict[str, Any], solve: Solve, seconds: float, seed: int
) -> tuple[int, dict[str, Any]]:
    """Runs in a worker: what is to be stored of a problem's only instance."""
    instance = problem.instances[0]
    entry = {name: round(compute(instance), DIGITS) for name, compute in problem.baselines.items()}
    if old.get("proven", False):
        return place, {**old, **entry}
    with _silenced():
        solved = solve(instance, seconds, seed)
    entry["ceiling"] = rounded(solved.value, problem.maximise)
    return place, entry | ({"proven": True} if solved.proven else {})


@contextmanager
def _silenced() -> Iterator[None]:
    """HiGHS prints a line of its own now and then, past Python's standard output."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def rounded(value: float, maximise: bool) -> float:
    """A ceiling in so many digits that an optimal solution is never better than it: rounded to the unreachable side."""
    scale = 10.0**DIGITS
    return (math.ceil(value * scale) if maximise else math.floor(value * scale)) / scale


def merge(old: dict[str, Any], new: dict[str, Any], problem: Problem, method: Method) -> dict[str, Any]:
    """The new entry, with the old ceiling where that says more: proven, else better, or a bound that is tighter."""
    sign = 1 if problem.maximise != method.bound else -1
    known = [entry for entry in (new, old) if "ceiling" in entry]
    kept = max(known, key=lambda entry: (entry.get("proven", False), sign * entry["ceiling"]))
    proof = {"proven": True} if kept.get("proven", False) else {}
    return {"ceiling": kept["ceiling"], **proof, **{name: new[name] for name in problem.baselines}}


def summarise(stored: dict[str, Any], name: str, one: tuple[str, int], count: int, seconds: float) -> None:
    """Note what a set amounts to, and the longest that an instance of it was tried for.

    Args:
        stored: the content of the file; changed.
        name: of the problem.
        one: split and size.
        count: of the instances that were selected; more may have been before.
        seconds: an instance was tried for, 0 when none was.
    """
    split, size = one
    before = stored["sets"].get(f"{split}{size}", {"instances": 0, "seconds": 0.0})
    problem = registry.get(name, split=split, size=size, n_instances=max(count, before["instances"]))
    keys = [problem.key(instance) for instance in problem.instances]
    entries = [stored["instances"][key] for key in keys if key in stored["instances"]]
    stored["sets"][f"{split}{size}"] = {
        "instances": len(entries),
        "proven": sum(entry.get("proven", False) for entry in entries),
        "ceiling": round(float(np.mean([entry["ceiling"] for entry in entries])), 6) if entries else None,
        "seconds": max(before["seconds"], seconds),
    }


def write(path: Path, stored: dict[str, Any], method: Method) -> None:
    """Replace the file at one stroke."""
    spent = sorted({one["seconds"] for one in stored["sets"].values()})
    limits = " to ".join(f"{limit:g}" for limit in dict.fromkeys((spent[0], spent[-1])))
    ceiling = {"name": method.name, "by": method.by.format(seconds=f"{limits} s")}
    blocks = [f'"ceiling": {json.dumps(ceiling)}']
    for block in ("sets", "instances"):
        rows = [f"  {json.dumps(key)}: {json.dumps(stored[block][key])}" for key in sorted(stored[block])]
        blocks.append(f'"{block}": {{\n' + ",\n".join(rows) + "\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text("{\n" + ",\n".join(blocks) + "\n}\n")
    part.replace(path)


def check_packages(names: Iterable[str]) -> None:
    """Raises:
    UserError: a package that a method needs is missing.
    """
    needed = {package for name in names for package in methods()[name].packages}
    missing = sorted(package for package in needed if importlib.util.find_spec(package) is None)
    if missing:
        remedy = "Install them on Python 3.11 or later with: pip install 'eoh-esopt[solvers]'"
        raise UserError(f"Packages that are missing here: {', '.join(missing)}. {remedy}")


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--split", "splits", multiple=True, type=click.Choice(["train", "val", "test"]), help="[train and test]")
@click.option("--size", type=click.IntRange(min=1), help="Only this size.  [the published ones]")
@click.option("--instances", type=click.IntRange(min=1), help="The first so many of each set.  [train all, else 64]")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="For an instance.  [a tenth of its size]")
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count(), show_default=True, help="Processes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the route search.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=DATA, help="[problems/data]")
def main(problems: tuple[str, ...], splits: tuple[str, ...], **options: Any) -> None:
    """Compute reference values of the built-in problems: optimum or best known, and the classical baselines.

    A value already stored is replaced only by a better one, and what is proven is not done again.
    """
    names = problems or tuple(sorted(methods()))
    selection = Selection(splits or ("train", "test"), **options)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        for name in names:
            if name not in methods():
                raise UserError(f"There are no ceilings of {name!r}. Problems: {', '.join(sorted(methods()))}.")
        check_packages(names)
        with Progress(*columns, console=console) as progress:
            for name in names:
                update(name, selection, progress)
    except UserError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
