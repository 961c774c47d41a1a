"""`eoh-esopt probe`: whether a planned run can learn, and with which settings, before it is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from eoh_esopt.cli.run import run
from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.engine.config import RunConfig

_SAMPLING = ("temperature", "top_p", "top_k", "max_new_tokens", "presence_penalty")
_AS_RUN = (
    *("presets", "model", "method", "budget", "seed", "population", "directions", "samples_per_direction"),
    *(
        "sigma",
        "sigma_final",
        "sigma_schedule",
        "alpha",
        "reward",
        "scope",
        "noise",
        "rank",
        "restore",
        "dtype",
        "prefill",
    ),
    *(*_SAMPLING, "timeout", "isolation", "max_batch", "backend", "tensor_parallel", "servers", "request_timeout"),
    *("data", "workers"),
)
"""Options with the same name, default and meaning as those of `run`."""

_PLAIN = ("shaping", "antithetic", "momentum", "adaptive_sigma", "shuffle_rewards", "ablation")
"""Settings that presets may have, and that no prediction is made for."""


@click.command()
@click.argument("problem")
@click.option("--sigmas", help="Sizes to measure, such as 0.03,0.06.  [default: half, once and twice the run's sigma]")
@click.option("--pairs", type=int, default=24, show_default=True, help="Directions to measure, each with its mirror.")
@click.option("--probe-samples", type=int, default=2, show_default=True, help="Candidates under each direction.")
@click.option("--repetitions", type=int, default=3, show_default=True, help="Runs of each arm that are planned.")
@click.option(
    "--most-damage", type=float, default=0.5, show_default=True, help="Allowed, in units of a reward's noise."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="File that keeps the rewards; what it holds is not redone."
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "md", "json"]),
    default="table",
    show_default=True,
    help="Output.",
)
@click.pass_context
def probe(
    context: click.Context,
    /,
    problem: str,
    presets: tuple[str, ...],
    sigmas: str | None,
    pairs: int,
    probe_samples: int,
    repetitions: int,
    most_damage: float,
    out: Path | None,
    form: str,
    workers: int | None,
    **settings: Any,
) -> None:
    """Measure noise, signal and damage of directions on PROBLEM, and predict what a run would learn.

    Take the command of the planned run and put `probe` for `run`. The model writes pairs x 2 x samples candidates for
    each operator that learns, at each sigma and without perturbation; the weights stay as they are. With --out the
    rewards are kept: called again with another budget, alpha or number of repetitions, nothing is written anew.

    \b
    Examples:
      eoh-esopt probe tsp_construct --model SmolLM2-135M-Instruct --scope norms --budget 440 --out probe.json
      eoh-esopt probe tsp_construct --model SmolLM2-135M-Instruct --scope norms --budget 2000 --out probe.json -f md
      eoh-esopt probe kp_construct --preset ahd-1000 --model meta-llama/Llama-3.1-8B-Instruct --out probe.json
      eoh-esopt probe kp_construct --model ./my-model --sigmas 5e-4,1e-3,2e-3 --pairs 24 --repetitions 10
    """
    from eoh_esopt.experiments.probe import Design, grid, learning_operators, measure
    from eoh_esopt.experiments.probe_advice import advise
    from eoh_esopt.reports.probe import as_json, as_markdown, print_advice

    workers = (os.cpu_count() or 1) if workers is None else workers
    for name, value, least in (("workers", workers, 1), ("repetitions", repetitions, 1)):
        if value < least:
            raise UserError(f"{name} must be at least {least}, not {value}.")
    if not most_damage > 0:
        raise UserError(f"--most-damage must be above 0, not {most_damage}.")
    if presets:
        settings |= _preset_settings(context, presets, settings)
    config = _config(problem, settings)
    design = Design(grid(config) if sigmas is None else _parse(sigmas), pairs, probe_samples)
    total = design.cell_size * len(learning_operators(config)) * (1 + len(design.sigmas))
    with _bar(total) as (advance, notify):
        found = measure(config, design, out, workers=workers, notify=notify, advance=advance)
    advice = advise(found, design.sigmas, repetitions, most_damage)
    if form == "json":
        click.echo(as_json(advice, found.facts))
    elif form == "md":
        click.echo(as_markdown(advice))
    else:
        print_advice(advice)


probe.params.extend(option for option in run.params if option.name in _AS_RUN)


def _preset_settings(context: click.Context, presets: tuple[str, ...], settings: dict[str, Any]) -> dict[str, Any]:
    """What presets say, and over it what was given beside them."""
    from eoh_esopt.experiments.presets import Preset, load_preset, merged

    commandline = click.core.ParameterSource.COMMANDLINE
    given = {name: one for name, one in settings.items() if context.get_parameter_source(name) is commandline}
    return merged([*map(load_preset, presets), Preset("", given)])


def _config(problem: str, settings: dict[str, Any]) -> RunConfig:
    from eoh_esopt.engine.config import RunConfig
    from eoh_esopt.models.protocol import Sampling
    from problems import registry

    if settings["model"] is None:
        raise UserError("--model is missing: give the model of the planned run.")
    sampling = Sampling(**{name: settings.pop(name) for name in _SAMPLING})
    config = RunConfig(problem=registry.absolute(problem), sampling=sampling, **settings)
    for name in _PLAIN:
        if getattr(config, name) != getattr(RunConfig, name):
            raise UserError(
                f"A probe predicts the plain update, and {name} is {getattr(config, name)!r}. Leave it out."
            )
    return config if config.data is None else replace(config, data=str(Path(config.data).resolve()))


def _parse(sigmas: str) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in sigmas.split(","))
    except ValueError as error:
        raise UserError(f"--sigmas takes numbers with commas between them, not {sigmas!r}.") from error


@contextmanager
def _bar(total: int) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """Progress and news on the error output, so that the answer stands alone on the other."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("candidates", total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        def notify(message: str) -> None:
            console.print(message, markup=False, highlight=False, soft_wrap=True)

        yield advance, notify
