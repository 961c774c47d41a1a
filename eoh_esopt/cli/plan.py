"""`eoh-esopt plan`: what a search will need and how long it will take, before anything is downloaded or rented.

A thin layer over `eoh_esopt.planning`: options in, tables or JSON out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Column, Table

from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.planning.plan import Machine, Plan, Way
    from eoh_esopt.planning.shapes import ModelShape
    from eoh_esopt.planning.workload import Seconds, Workload

_HERE = ("cpu", "this")


@click.command()
@click.option("--model", required=True, help="Name, hub id or folder; no weights are read.")
@click.option("--gpu", "gpus", multiple=True, required=True, help="H100, 'RTX 4090', ..., cpu or this; repeatable.")
@click.option("--count", type=int, default=1, show_default=True, help="GPUs of that kind.")
@click.option("--method", default="esopt-eoh", show_default=True, help="eoh, esopt-eoh, sample or esopt-sample.")
@click.option("--budget", type=int, default=1000, show_default=True, help="Candidates.")
@click.option("--population", type=int, default=10, show_default=True, help="Heuristics kept; size of e1 and e2.")
@click.option("--directions", type=int, default=10, show_default=True, help="Directions of one update.")
@click.option("--samples-per-direction", type=int, default=1, show_default=True, help="Candidates of each direction.")
@click.option("--scope", default="full", show_default=True, help="Weights that learn: full or norms.")
@click.option("--noise", default="full", show_default=True, help="full or lowrank.")
@click.option("--dtype", default="auto", show_default=True, help="auto, bfloat16, float16 or float32.")
@click.option("--restore", default="all", show_default=True, help="all, exact, residual, host or subtract.")
@click.option("--prompt-tokens", type=int, default=350, show_default=True, help="Tokens of a prompt.")
@click.option("--tokens", type=float, default=250, show_default=True, help="Tokens of a reply, on average.")
@click.option("--max-new-tokens", type=int, default=512, show_default=True, help="Limit of a reply.")
@click.option("--max-batch", type=int, default=64, show_default=True, help="Most replies written at once.")
@click.option("--evaluation", type=float, default=0.1, show_default=True, help="Seconds of one candidate.")
@click.option("--workers", type=int, help="Sandbox workers.  [default: one a core]")
@click.option("--parameters", type=int, help="Weights of a model whose sizes are not known.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="File for all figures.")
@click.pass_context
def plan(
    context: click.Context,
    /,
    model: str,
    gpus: tuple[str, ...],
    count: int,
    dtype: str,
    restore: str,
    parameters: int | None,
    json_file: Path | None,
    **settings: Any,
) -> None:
    """Predict memory, seconds of each step and of the whole run, and say which precision mode to take.

    Cards are predicted by their data sheets; `cpu` and `this` (its GPU, if it has one) by timing a few layers here.
    Exit code 1 when there is no room for the run.

    \b
    Examples:
      eoh-esopt plan --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --method esopt-eoh --budget 1000
      eoh-esopt plan --model Qwen3.5-27B --gpu A100-80 --gpu H200 --count 4
      eoh-esopt plan --model SmolLM2-135M-Instruct --gpu cpu --scope norms --directions 16 --tokens 60
      eoh-esopt plan --model ./my-model --gpu "RTX 4090" --json plan.json
    """
    from eoh_esopt.planning.plan import make_plan, restore_modes, scope_of
    from eoh_esopt.planning.shapes import find_shape

    if count < 1:
        raise UserError(f"count must be at least 1, not {count}.")
    workload = _workload(model, settings)
    folder = _folder(model)
    shape = find_shape(model if folder is None else str(folder), parameters)
    dtype = _dtype(dtype, folder)
    modes = restore_modes(restore, scope_of(workload), dtype)
    machines = [_machine(gpu, count, shape, folder, workload, dtype, modes) for gpu in gpus]
    element = _ELEMENT[dtype]
    plans = [make_plan(machine, count, shape, workload, element, modes) for machine in machines]
    if json_file is not None:
        _write(json_file, plans, workload)
    console = Console()
    if len(plans) == 1:
        _print_plan(console, plans[0], workload)
    else:
        _print_cards(console, plans, workload)
    if not any(one.best for one in plans):
        context.exit(1)


_ELEMENT = {"bfloat16": 2, "float16": 2, "float32": 4}


def _workload(model: str, settings: dict[str, Any]) -> Workload:
    from eoh_esopt.engine.config import RunConfig
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.planning.workload import Workload

    prompt, reply, evaluation = (settings.pop(name) for name in ("prompt_tokens", "tokens", "evaluation"))
    workers = settings.pop("workers")
    sampling = Sampling(max_new_tokens=settings.pop("max_new_tokens"))
    config = RunConfig(problem="tsp_construct", model=model, sampling=sampling, **settings)
    return Workload(config, prompt, reply, evaluation, (os.cpu_count() or 1) if workers is None else workers)


def _folder(model: str) -> Path | None:
    """Where the model lies on this machine, if it does."""
    from eoh_esopt.models.catalogue import lookup
    from eoh_esopt.models.fetch import info

    path = Path(model).expanduser()
    if path.is_dir():
        return path
    return info(model).folder if lookup(model) is not None else None


def _dtype(wanted: str, folder: Path | None) -> str:
    """The live weights' dtype; `auto` is the checkpoint's, and bfloat16 where that is not known."""
    if wanted == "auto":
        config = json.loads((folder / "config.json").read_text(encoding="utf-8")) if folder is not None else {}
        text = config.get("text_config") or config
        wanted = text.get("dtype") or text.get("torch_dtype") or "bfloat16"
    if wanted not in _ELEMENT:
        raise UserError(f"Unknown dtype {wanted!r}. Choose one of: auto, {', '.join(_ELEMENT)}.")
    return wanted


def _machine(
    gpu: str,
    count: int,
    shape: ModelShape,
    folder: Path | None,
    workload: Workload,
    dtype: str,
    modes: Sequence[str],
) -> Machine:
    from eoh_esopt.planning.cards import find_card
    from eoh_esopt.planning.plan import Moved, scope_of

    if gpu.lower() not in _HERE:
        from eoh_esopt.planning.machines import CardMachine

        card = find_card(gpu)
        return CardMachine(card, shape, Moved.of(shape, scope_of(workload)), _ELEMENT[dtype])
    if count != 1:
        raise UserError(f"--count is for GPUs of the table; there is one of --gpu {gpu}.")
    import torch

    from eoh_esopt.planning.machines import measure_here

    device = "cuda" if gpu.lower() == "this" and torch.cuda.is_available() else "cpu"
    if device == "cpu" and len(modes) > 1:
        modes = [mode for mode in modes if mode != "host"]  # which is `exact` where there is one memory
    click.echo(f"Timing a few layers of {shape.name} on this machine", err=True)
    return measure_here(device, shape, folder, workload, getattr(torch, dtype), modes)


def _write(file: Path, plans: Sequence[Plan], workload: Workload) -> None:
    from eoh_esopt.engine.events import write_atomically

    report = {"workload": asdict(workload), "plans": [asdict(plan) | {"best": _ways(plan)} for plan in plans]}
    write_atomically(file, json.dumps(report, indent=1) + "\n")


def _ways(plan: Plan) -> dict[str, Any] | None:
    return None if plan.best is None else asdict(plan.best)


def _print_plan(console: Console, plan: Plan, workload: Workload) -> None:
    console.print(_heading(plan, workload))
    table = Table("backend", "restore", "cards", *(Column(name, justify="right") for name in _FIGURES), box=None)
    for way in plan.ways:
        table.add_row(way.backend, way.restore, _cards(way), *_figures(way, workload))
    console.print(table)
    best = plan.best
    if best is not None:
        console.print()
        console.print(_batches(best))
    console.print()
    console.print(_advice(plan, workload), soft_wrap=True)
    console.print(_assumed(plan, workload), soft_wrap=True)


_FIGURES = ("weights", "masters", "cache", "work", "needed", "room", "host", "one update", "whole run")


def _figures(way: Way, workload: Workload) -> list[str]:
    memory = way.memory
    bytes_ = [memory.weights, memory.masters, memory.cache, memory.work, memory.device, way.room, memory.host]
    times = [_time(_step(way, workload)), _time(way.total.total)] if way.fits else ["-", "no room"]
    return [*map(_size, bytes_), *times]


def _cards(way: Way) -> str:
    return f"{way.replicas} x {way.cards}" if way.replicas > 1 else str(way.cards)


def _step(way: Way, workload: Workload) -> float:
    """Seconds of a batch that learns, or of the longest where none does."""
    learning = [one.total for name, one in way.batches.items() if workload.learns(name)]
    return max(learning or [one.total for one in way.batches.values()])


def _batches(way: Way) -> Table:
    names = ("perturb", "write", "restore", "evaluate", "update")
    table = Table("batch", *(Column(name, justify="right") for name in (*names, "in all")), box=None)
    for operator, seconds in way.batches.items():
        table.add_row(operator, *(_time(getattr(seconds, name)) for name in names), _time(seconds.total))
    return table


def _heading(plan: Plan, workload: Workload) -> str:
    shape, config = plan.shape, workload.config
    guessed = ", its sizes guessed" if shape.approximate else ""
    cards = f"{plan.gpus} x {plan.where}" if plan.gpus > 1 else plan.where
    return (
        f"{shape.name} ({shape.parameters / 1e9:.3g}e9 weights{guessed}) on {cards}: {config.method}, "
        f"{config.budget} candidates, {config.directions} directions x {config.samples_per_direction}"
    )


def _advice(plan: Plan, workload: Workload) -> str:
    """One sentence: what to take and what it waits for, or what is lacking."""
    best = plan.best
    if best is None:
        least = min(plan.ways, key=lambda way: way.memory.device / way.room)
        return (
            f"There is no room: {least.backend} with restore mode {least.restore!r} comes nearest and needs "
            f"{_size(least.memory.device)} of {_size(least.room)}. Take more cards (--count), larger ones, or "
            "--scope norms, which keeps next to no masters."
        )
    name, share = max(_shares(best.total).items(), key=lambda item: item[1])
    replicas = f", {best.replicas} replicas" if best.replicas > 1 else ""
    cause = f", where a token mostly waits for {best.cause}" if name == "writing" else ""
    return (
        f"Take --backend {'served' if best.replicas > 1 else best.backend} --restore {best.restore}{replicas}: "
        f"{_time(best.total.total)} in all. {share:.0%} of it is {name}{cause}."
    )


def _shares(total: Seconds) -> dict[str, float]:
    parts = {
        "writing": total.write,
        "moving the weights for directions": total.perturb + total.restore,
        "updates": total.update,
        "waiting for candidates": total.evaluate,
    }
    return {name: seconds / total.total for name, seconds in parts.items()}


def _assumed(plan: Plan, workload: Workload) -> str:
    speeds = "Timed on this machine" if plan.where.startswith("this machine") else "By data sheets, not measured"
    return (
        f"{speeds}. Assumed: prompts of {workload.prompt} tokens, replies of {workload.reply:g} on average and at "
        f"most {workload.config.sampling.max_new_tokens}, {workload.evaluation:g} s a candidate on {workload.workers} "
        "workers."
    )


def _print_cards(console: Console, plans: Sequence[Plan], workload: Workload) -> None:
    columns = (Column(name, justify="right") for name in ("needed", "room", "one update", "whole run"))
    table = Table("GPU", "backend", "restore", "cards", *columns, box=None)
    for plan in plans:
        best = plan.best
        if best is None:
            table.add_row(plan.where, *["-"] * 6, "no room")
            continue
        sizes = (_size(best.memory.device), _size(best.room))
        times = (_time(_step(best, workload)), _time(best.total.total))
        table.add_row(plan.where, best.backend, best.restore, _cards(best), *sizes, *times)
    console.print(_heading(plans[0], workload).replace(f" on {plans[0].where}", ""))
    console.print(table)
    console.print(_assumed(plans[0], workload), soft_wrap=True)


def _size(number: float) -> str:
    gib = number / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{gib * 1024:.0f} MiB"


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return f"{seconds * 1e3:.1f} ms" if seconds else "0"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
