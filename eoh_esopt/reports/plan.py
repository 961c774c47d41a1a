"""A plan as people read it: tables, and one sentence on what to take and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

if TYPE_CHECKING:
    from eoh_esopt.planning.plan import Plan, Way
    from eoh_esopt.planning.workload import Seconds, Workload

_WORDS = ("GPU", "backend", "mode", "cards", "batch")
_MEMORY = ("weights", "masters", "cache", "work", "needed", "room", "host")


def print_plan(plan: Plan, workload: Workload, more: Plan | None) -> None:
    """Every way, the batches of the best, and what to take.

    Args:
        plan: on one kind of card.
        workload: the run.
        more: the plan with as many more cards as vLLM needs, if that would help.
    """
    console = Console()
    console.print(_heading(plan, workload, plan.where), soft_wrap=True)
    memory = _table("backend", "mode", "cards", *_MEMORY, title="memory of one replica, GiB")
    time = _table("backend", "mode", "cards", _step_name(workload), "whole run")
    for way in plan.ways:
        memory.add_row(way.backend, way.restore, _cards(way), *_sizes(way))
        time.add_row(way.backend, way.restore, _cards(way), *_times(way, workload))
    console.print(memory, "", time, sep="\n")
    if plan.best is not None:
        console.print("", _batches(plan.best), sep="\n")
    for text in ("", _advice(plan), *_more(more), _assumed(plan, workload)):
        console.print(text, soft_wrap=True)


def print_cards(plans: Sequence[Plan], workload: Workload) -> None:
    """The best way on each of several kinds of cards."""
    console = Console()
    table = _table("GPU", "backend", "mode", "cards", "needed", "room", _step_name(workload), "whole run")
    for plan in plans:
        best = plan.best
        if best is None:
            table.add_row(plan.where, *["-"] * 6, "no room")
            continue
        sizes = (_size(best.memory.device), _size(best.room))
        times = (_time(_step(best, workload)), _time(best.total.total))
        table.add_row(plan.where, best.backend, best.restore, _cards(best), *sizes, *times)
    console.print(_heading(plans[0], workload, "each"), soft_wrap=True)
    console.print(table)
    console.print(_assumed(plans[0], workload), soft_wrap=True)


def _heading(plan: Plan, workload: Workload, where: str) -> str:
    shape, config = plan.shape, workload.config
    guessed = ", its sizes guessed" if shape.approximate else ""
    cards = f"{plan.gpus} x {where}" if plan.gpus > 1 else where
    return (
        f"{shape.name} ({shape.parameters / 1e9:.3g}e9 weights{guessed}) on {cards}: {config.method}, "
        f"{config.budget} candidates, {config.directions} directions x {config.samples_per_direction}"
    )


def _table(*names: str, title: str | None = None) -> Table:
    """Words to the left, figures to the right."""
    columns = (Column(name, justify="left" if name in _WORDS else "right") for name in names)
    return Table(*columns, box=None, pad_edge=False, title=title, title_justify="left")


def _sizes(way: Way) -> list[str]:
    memory = way.memory
    parts = (memory.weights, memory.masters, memory.cache, memory.work, memory.device, way.room, memory.host)
    return [f"{one / 2**30:.{1 if one > 2**30 else 2}f}" if one else "0" for one in parts]


def _times(way: Way, workload: Workload) -> list[str]:
    return [_time(_step(way, workload)), _time(way.total.total)] if way.fits else ["-", "no room"]


def _cards(way: Way) -> str:
    return f"{way.replicas} x {way.cards}" if way.replicas > 1 else str(way.cards)


def _step_name(workload: Workload) -> str:
    return "one update" if workload.config.learns else "one batch"


def _step(way: Way, workload: Workload) -> float:
    """Seconds of a batch that learns, or of the longest where none does."""
    learning = [one.total for name, one in way.batches.items() if workload.learns(name)]
    return max(learning or [one.total for one in way.batches.values()])


def _batches(way: Way) -> Table:
    names = ("perturb", "write", "restore", "evaluate", "update")
    table = _table("batch", *names, "in all")
    for operator, seconds in way.batches.items():
        table.add_row(operator, *(_time(getattr(seconds, name)) for name in names), _time(seconds.total))
    return table


def _advice(plan: Plan) -> str:
    """What to take and what it waits for, or what is lacking."""
    best = plan.best
    if best is None:
        least = min(plan.ways, key=lambda way: way.memory.device / way.room)
        return (
            f"There is no room: {least.backend} with restore mode {least.restore!r} comes nearest and needs "
            f"{_size(least.memory.device)} of {_size(least.room)}. Take more cards (--count), larger ones, or "
            "--scope norms, which keeps next to no masters."
        )
    name, share = max(_shares(best.total).items(), key=lambda item: item[1])
    cause = f", where a token mostly waits for {best.cause}" if name == "writing" else ""
    return f"Take {_options(best)}: {_time(best.total.total)} in all. {share:.0%} of it is {name}{cause}."


def _more(more: Plan | None) -> list[str]:
    way = more.best if more is not None else None
    if more is None or way is None:
        return []
    return [f"With {more.gpus} such cards: {_options(way)}, {_time(way.total.total)}."]


def _options(way: Way) -> str:
    split = f" --tensor-parallel {way.cards}" if way.backend == "vllm" and way.cards > 1 else ""
    if way.replicas > 1:
        return f"--backend served with {way.replicas} servers on {way.cards} of the cards each"
    return f"--backend {way.backend} --restore {way.restore}{split}"


def _shares(total: Seconds) -> dict[str, float]:
    parts = {
        "writing": total.write,
        "moving the weights for directions": total.perturb + total.restore,
        "updates": total.update,
        "waiting for candidates": total.evaluate,
    }
    return {name: seconds / total.total for name, seconds in parts.items()}


def _assumed(plan: Plan, workload: Workload) -> str:
    speeds = "Timed on this machine" if plan.measured else "By data sheets, not measured"
    return (
        f"{speeds}. Assumed: prompts of {workload.prompt} tokens, replies of {workload.reply:g} on average and at "
        f"most {workload.config.sampling.max_new_tokens}, {workload.evaluation:g} s a candidate on {workload.workers} "
        "workers."
    )


def _size(number: float) -> str:
    gib = number / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{gib * 1024:.0f} MiB"


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return f"{seconds * 1e3:.1f} ms" if seconds else "0"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
