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

from eoh_esopt.reports.plan import print_cards, print_plan
from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.planning.plan import Machine, Plan
    from eoh_esopt.planning.shapes import ModelShape
    from eoh_esopt.planning.workload import Workload

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
    from eoh_esopt.planning.plan import for_vllm, make_plan, restore_modes, scope_of
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
    if len(plans) > 1:
        print_cards(plans, workload)
    else:
        needs_more = plans[0].best is None or plans[0].best.backend != "vllm"
        more = for_vllm(machines[0], count, shape, workload, element) if needs_more else None
        print_plan(plans[0], workload, more)
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

    bests = [None if plan.best is None else plan.ways.index(plan.best) for plan in plans]
    found = [asdict(plan) | {"best": best} for plan, best in zip(plans, bests, strict=True)]
    write_atomically(file, json.dumps({"workload": asdict(workload), "plans": found}, indent=1) + "\n")
