"""A diagnosis as people and programs read it: tables, and what they mean in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from eoh_esopt.experiments.diagnostics import Candidates, Diagnosis, Moved
from eoh_esopt.reports.objective import Scale
from eoh_esopt.reports.page.tables import Cell, Table, columns


def tables(diagnosis: Diagnosis, scale: Scale) -> tuple[Table, ...]:
    """All tables; those that would be empty are left out."""
    found = (
        _learning(diagnosis),
        _rewards(diagnosis),
        _updates(diagnosis),
        _candidates("generations", "generation", diagnosis.generations, scale),
        _candidates("operators", "operator", diagnosis.operators, scale),
        _time(diagnosis),
    )
    return tuple(table for table in found if table.rows)


def readings(diagnosis: Diagnosis) -> Iterator[str]:
    """What the figures say, and what they cannot say."""
    if diagnosis.learning.count == 0:
        yield "The weights were not meant to move in this run."
        return
    total = diagnosis.total
    if total is None:
        yield "The weights never moved: whatever was found, nothing was learnt."
    elif total.within_sigma is not None and total.noise_within_sigma is not None:
        yield (
            f"All updates together moved {total.within_sigma:.1%} of the weights by at most sigma; on random rewards "
            f"it would be {total.noise_within_sigma:.1%}. Sizes do not tell learning from noise: compare with a run "
            "with --shuffle-rewards."
        )
    if diagnosis.overhead is not None:
        yield f"Moving the weights took {diagnosis.overhead:.1%} on top of the time of all else."
    elif diagnosis.timings is not None:
        yield "The backend does not tell perturbations from writing, so what learning costs in time is not known."


def together(runs: Sequence[str], tables: Sequence[Sequence[Table]]) -> list[Table]:
    """Each table once, with the rows of all runs under a first column that names the run."""
    found: dict[str, Table] = {}
    for run, of_run in zip(runs, tables, strict=True):
        for table in of_run:
            before = found.get(table.name, replace(table, columns=(*columns("run"), *table.columns), rows=()))
            found[table.name] = replace(before, rows=(*before.rows, *((run, *row) for row in table.rows)))
    return list(found.values())


def as_rich(table: Table) -> RichTable:
    """A table for the terminal, without columns that nothing stands in."""
    filled = [place for place in range(len(table.columns)) if any(row[place] for row in table.texts)]
    kept = [table.columns[place] for place in filled]
    heads = (Column(one.title, justify="right" if one.number else "left") for one in kept)
    shown = RichTable(*heads, title=table.title, title_justify="left", box=None)
    for row in table.texts:
        shown.add_row(*(Text(row[place]) for place in filled))
    return shown


def _learning(diagnosis: Diagnosis) -> Table:
    learning = diagnosis.learning
    rows: dict[str, int] = {
        "all": learning.count,
        "weights moved": learning.updated,
        "no valid candidate": learning.all_invalid,
        "no spread of rewards": learning.without_spread,
        **{f"skipped: {reason}": count for reason, count in learning.skip_reasons.items()},
    }
    return Table(
        "learning",
        "Learning batches",
        columns("batches", count="d", share=".0%"),
        tuple((name, count, count / learning.count) for name, count in rows.items()) if learning.count else (),
    )


def _rewards(diagnosis: Diagnosis) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            str(one.step),
            one.operator,
            one.generation,
            one.sigma,
            min(one.rewards),
            max(one.rewards),
            one.contrast,
            one.spread,
            one.signal,
        )
        for one in diagnosis.updates
    ]
    form = columns(
        *("update", "operator"),
        generation="d",
        sigma=".3g",
        lowest=".3g",
        highest=".3g",
        contrast=".3g",
        spread=".3g",
        signal=".0%",
    )
    return Table("rewards", "Rewards of the directions of each update", form, tuple(rows))


def _updates(diagnosis: Diagnosis) -> Table:
    """The updates, and all of them together."""
    rows: list[tuple[Cell, ...]] = [(str(one.step), *_moved(one.moved), one.cosine) for one in diagnosis.updates]
    if diagnosis.total is not None:
        rows.append(("all", *_moved(diagnosis.total), None))
    return Table(
        "updates",
        "How far updates moved the weights, and how far noise does: the same updates on random rewards",
        columns(
            "update",
            size=".3g",
            of_noise=".3g",
            within_sigma=".2%",
            noise_within_sigma=".2%",
            norm=".3g",
            of_the_weights=".3%",
            cosine=".3f",
        ),
        tuple(rows),
    )


def _moved(moved: Moved) -> tuple[Cell, ...]:
    within = moved.within_sigma, moved.noise_within_sigma
    return (moved.size, moved.noise_size, *within, moved.norm, moved.relative)


def _candidates(name: str, of: str, found: Sequence[Candidates], scale: Scale) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.of,
            one.count,
            one.parsed,
            one.valid,
            one.valid / one.count if one.count else None,
            one.new,
            one.distinct,
            None if one.best is None else scale.natural(one.best),
        )
        for one in found
    ]
    form = columns(
        of, candidates="d", parsed="d", valid="d", validity=".0%", new="d", distinct_objectives="d", best=".4f"
    )
    return Table(name, f"Candidates by {of}", form, tuple(rows))


def _time(diagnosis: Diagnosis) -> Table:
    timings = diagnosis.timings
    rows: list[tuple[Cell, ...]] = []
    if timings is not None:
        parts = {
            "writing": timings.generate,
            "perturbing": timings.perturb,
            "restoring": timings.restore,
            "updating": timings.update,
            "waiting for evaluations": timings.evaluate,
        }
        parts["the rest"] = diagnosis.seconds - sum(value for value in parts.values() if value is not None)
        shown = {**parts, "in all": diagnosis.seconds, "sandbox, beside": timings.sandbox}
        rows = [(name, value, _over(value, diagnosis.seconds)) for name, value in shown.items()]
    return Table("time", "Wall time", columns("part", seconds=".1f", share=".1%"), tuple(rows))


def _over(value: float | None, whole: float) -> float | None:
    return value / whole if value is not None and whole > 0 else None
