"""`eoh-esopt run`: begin or resume a search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eoh_esopt.reports.live import watch
from eoh_esopt.reports.summary import print_summary
from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.engine.config import RunConfig
    from operators.task import SeedHeuristic

_LABELS = {"problem": "PROBLEM", "presets": "--preset"}
_KEPT_ON_RESUME = {"resume_folder", "workers"}
_MOVABLE = ("base_url", "request_timeout", "servers")
_SAMPLING = ("temperature", "top_p", "top_k", "max_new_tokens", "presence_penalty")


@click.command()
@click.argument("problem", required=False)
@click.option("--model", help="Name from `eoh-esopt model list`, a hub id, or a folder with a checkpoint.")
@click.option(
    "--preset", "presets", multiple=True, help="Name from `eoh-esopt preset list` or a .toml file; repeatable."
)
@click.option("--method", default="esopt-eoh", show_default=True, help="eoh, esopt-eoh, sample or esopt-sample.")
@click.option("--budget", type=int, default=1000, show_default=True, help="Candidates; the start population is free.")
@click.option("--seed", type=int, default=2024, show_default=True, help="Seed of every random stream of the run.")
@click.option("--out", type=click.Path(path_type=Path), help="New folder for the run.")
@click.option("--resume", "resume_folder", type=click.Path(path_type=Path), help="Go on with the run in this folder.")
@click.option("--population", type=int, default=10, show_default=True, help="Heuristics kept; size of e1 and e2.")
@click.option("--directions", type=int, default=10, show_default=True, help="Directions of one update.")
@click.option("--samples-per-direction", type=int, default=1, show_default=True, help="Candidates of each direction.")
@click.option("--sigma", type=float, help="Size of the perturbations at first.  [default: the scope's]")
@click.option("--sigma-final", type=float, help="Size of the perturbations at last.  [default: the scope's]")
@click.option("--sigma-schedule", default="cosine", show_default=True, help="cosine, linear or constant.")
@click.option("--alpha", type=float, help="Learning rate.  [default: the scope's]")
@click.option("--reward", help="graded, paper or ordered.  [default: graded below 1B parameters, else paper]")
@click.option("--scope", default="full", show_default=True, help="Weights that learn: full or norms.")
@click.option("--noise", default="full", show_default=True, help="full, or lowrank: a batch's replies written at once.")
@click.option("--rank", type=int, help="Rank of low-rank noise.  [default: 1]")
@click.option("--restore", default="exact", show_default=True, help="exact, residual, host, or subtract (drifts).")
@click.option("--dtype", default="auto", show_default=True, help="auto, bfloat16, float16 or float32.")
@click.option("--prefill", help="How far replies are begun: none, signature, suggestion.  [default: by model size]")
@click.option("--temperature", type=float, default=0.8, show_default=True)
@click.option("--top-p", type=float, default=0.95, show_default=True)
@click.option("--top-k", type=int, default=50, show_default=True)
@click.option("--max-new-tokens", type=int, default=512, show_default=True, help="Limit of a reply.")
@click.option("--presence-penalty", type=float, default=0.0, show_default=True, help="Off the logits of its tokens.")
@click.option("--shuffle-rewards", is_flag=True, help="Control: deal the rewards out at random; nothing can be learnt.")
@click.option("--ablation", default="none", show_default=True, help="Control: noise-only or no-perturbation.")
@click.option("--co-evolve", is_flag=True, help="Renew the prompts' insights after each generation, by the model.")
@click.option("--shaping", default="z-score", show_default=True, help="Rewards to weights: z-score or centred-rank.")
@click.option("--antithetic", is_flag=True, help="Directions in pairs of opposite sign; needs an even --directions.")
@click.option("--momentum", type=float, default=0.0, show_default=True, help="Share of the last step that is kept.")
@click.option("--adaptive-sigma", is_flag=True, help="Move sigma by the share of signal in the rewards.")
@click.option("--timeout", type=float, default=20.0, show_default=True, help="Seconds for one evaluation.")
@click.option("--isolation", default="best", show_default=True, help="Sandbox: best, required or none.")
@click.option("--max-batch", type=int, default=64, show_default=True, help="Most replies written at once.")
@click.option("--backend", default="transformers", show_default=True, help="transformers, vllm, served or openai.")
@click.option("--tensor-parallel", type=int, default=1, show_default=True, help="GPUs for each layer (vllm).")
@click.option("--servers", help="Addresses of `eoh-esopt serve`, separated by commas (served). Key: EOH_ESOPT_KEY.")
@click.option("--base-url", help="Address of the endpoint, such as http://localhost:8000. Its key: OPENAI_API_KEY.")
@click.option("--request-timeout", type=float, default=120.0, show_default=True, help="Seconds for one reply of it.")
@click.option("--cassette", help="File to record replies to, and to play them back from.")
@click.option("--data", help="Folder of published instance files.  [default: drawn from documented seeds]")
@click.option("--init-from", help="Population file or results folder of EoH or LLM4AD, in place of the i1 batch.")
@click.option("--workers", type=int, default=None, help="Sandbox workers.  [default: one a core]")
@click.pass_context
def run(
    context: click.Context,
    /,
    problem: str | None,
    presets: tuple[str, ...],
    out: Path | None,
    resume_folder: Path | None,
    workers: int | None,
    **settings: Any,
) -> None:
    """Search for a heuristic for PROBLEM while the model learns.

    \b
    Examples:
      eoh-esopt run tsp_construct --model SmolLM2-135M-Instruct --scope norms --budget 400 --out runs/a
      eoh-esopt run tsp_construct --model meta-llama/Llama-3.1-8B-Instruct --budget 1000 --out runs/b
      eoh-esopt run tsp_construct --model ./my-model --method eoh --budget 200 --seed 1 --out runs/c
      eoh-esopt run my_problem.py --model SmolLM2-135M-Instruct --scope norms --out runs/d
      eoh-esopt run kp_construct --preset ahd-1000 --method esopt-sample --seed 7 --out runs/h
      eoh-esopt run tsp_construct --preset ahd-1000 --preset noise-only --directions 8 --out runs/i
      eoh-esopt run tsp_construct --backend openai --base-url localhost:8000 --model m --method eoh --out runs/e
      eoh-esopt run tsp_construct --backend served --servers localhost:8000,localhost:8001 --model m --out runs/f
      eoh-esopt run tsp_construct --init-from ~/EoH/results --model ./my-model --out runs/g
      eoh-esopt run --resume runs/a
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise UserError(f"workers must be at least 1, not {workers}.")
    if resume_folder is not None:
        _refuse_settings(context)
        summary = _resume(resume_folder, workers, _moved(context))
        print_summary(resume_folder, summary)
        return
    if presets:
        settings |= _preset_settings(presets, {name: settings[name] for name in settings if _is_given(context, name)})
    if problem is None or settings["model"] is None or out is None:
        missing = "PROBLEM" if problem is None else "--model" if settings["model"] is None else "--out"
        raise UserError(f"{missing} is missing. A run needs a problem, --model and --out; or --resume FOLDER.")
    summary = _start(problem, out, workers, settings)
    print_summary(out, summary)


def _preset_settings(presets: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """What presets say, a later one over an earlier one, and what was given beside them over all of it."""
    from eoh_esopt.experiments.presets import Preset, load_preset, merged

    return merged([*map(load_preset, presets), Preset("", given)])


def _start(problem: str, out: Path, workers: int, settings: dict[str, Any]) -> dict[str, Any]:
    from eoh_esopt.engine.config import RunConfig  # torch is loaded only when a run begins
    from eoh_esopt.engine.run import start
    from eoh_esopt.models.protocol import Sampling
    from problems import registry

    sampling = Sampling(**{name: settings.pop(name) for name in _SAMPLING})
    for name in ("data", "cassette", "init_from"):
        if settings[name] is not None:
            settings[name] = str(Path(settings[name]).resolve())
    config = RunConfig(problem=registry.absolute(problem), sampling=sampling, **settings)
    given = _given(config)
    with watch() as listener:
        return start(config, out, workers=workers, listener=listener, notify=listener.say, given=given)


def _given(config: RunConfig) -> list[SeedHeuristic]:
    """The programs to start from."""
    from eoh_esopt.hosts.populations import read_population
    from eoh_esopt.sandbox.spec import ProblemSpec

    if config.init_from is None:
        return []
    task = ProblemSpec.named(config.problem, data=config.data).build().task
    return read_population(Path(config.init_from), task.imports)


def _resume(folder: Path, workers: int, moved: dict[str, Any]) -> dict[str, Any]:
    from eoh_esopt.engine.run import resume

    with watch() as listener:
        return resume(folder, workers=workers, listener=listener, notify=listener.say, moved=moved)


def _moved(context: click.Context) -> dict[str, Any]:
    """What was given of the settings that may change on resume."""
    return {name: context.params[name] for name in _MOVABLE if _is_given(context, name)}


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _refuse_settings(context: click.Context) -> None:
    """A resumed run keeps its settings: anything else given beside --resume is a mistake."""
    for name in context.params:
        if _is_given(context, name) and name not in (*_KEPT_ON_RESUME, *_MOVABLE):
            label = _LABELS.get(name, f"--{name.replace('_', '-')}")
            raise UserError(
                f"{label} cannot be given with --resume: a run keeps the settings it began with. "
                "Leave it out, or begin a new run with --out."
            )
