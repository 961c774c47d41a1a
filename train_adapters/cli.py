"""`eoh-esopt train` and `eoh-esopt evaluate-agent`: a thin layer over the trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from eoh_esopt.cli.options import TABLE_OR_JSON
from operators.errors import UserError

_MOVABLE = ("base_url", "request_timeout", "servers")
OPEN = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Options that are not known here are the adapter's."""


@click.command(context_settings=OPEN)
@click.argument("adapter", required=False)
@click.option("--model", help="Name from `eoh-esopt model list`, a hub id, or a folder with a checkpoint.")
@click.option("--preset", "presets", multiple=True, help="Shipped name (--list-presets) or a .toml file; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), help="New folder for the training.")
@click.option("--resume", "resume_folder", type=click.Path(path_type=Path), help="Go on with the training there.")
@click.option("--list-presets", is_flag=True, help="Name the shipped presets and say what each is for.")
@click.option("--generations", type=int, help="Updates.  [default: 100]")
@click.option("--directions", type=int, help="Directions of one update, G.  [default: 32]")
@click.option("--batch", type=int, help="Tasks that every direction plays in a generation.  [default: 32]")
@click.option("--samples", type=int, help="Episodes of each task under each direction.  [default: 1]")
@click.option("--sigma", type=float, help="Size of the perturbations at first.  [default: the scope's]")
@click.option("--sigma-final", type=float, help="At last; above 0 regularises.  [default: the scope's, or sigma / 4]")
@click.option("--sigma-schedule", help="cosine, linear or constant.  [default: cosine]")
@click.option("--alpha", type=float, help="Learning rate.  [default: the scope's]")
@click.option("--seed", type=int, help="Seed of every random stream.  [default: 20260701]")
@click.option("--temperature", type=float, help="[default: 0.7]")
@click.option("--top-p", type=float, help="[default: 0.8]")
@click.option("--top-k", type=int, help="[default: 20]")
@click.option("--presence-penalty", type=float, help="Off the logits of tokens that a reply holds.  [default: 1.5]")
@click.option("--thinking", is_flag=True, default=None, help="Let models that can think do so before they answer.")
@click.option(
    "--pace", help="rounds (repeats itself exactly where no step is slow) or free (nobody waits).  [default: rounds]"
)
@click.option("--shaping", help="Rewards to weights: z-score or centred-rank.  [default: z-score]")
@click.option("--over-tasks", is_flag=True, default=None, help="Rewards as z-scores within each task.")
@click.option("--antithetic", is_flag=True, default=None, help="Directions in pairs of opposite sign.")
@click.option("--momentum", type=float, help="Share of the last step that is kept.  [default: 0]")
@click.option("--quorum", type=float, help="Share of a direction's episodes that must count.  [default: 0.5]")
@click.option("--direction-quorum", type=float, help="Share of directions that must count.  [default: 0.5]")
@click.option("--evaluate-every", type=int, help="Generations between evaluations; 0: first and last.  [default: 10]")
@click.option("--evaluation-repeats", type=int, help="Episodes a task in those on the way.  [default: 1]")
@click.option("--final-repeats", type=int, help="In the first and the last ones.  [default: 3]")
@click.option("--scope", help="Weights that learn: full or norms.  [default: full]")
@click.option("--noise", help="full or lowrank.  [default: full]")
@click.option("--rank", type=int, help="Rank of low-rank noise.  [default: 1]")
@click.option("--restore", help="exact, residual, host, or subtract (drifts).  [default: exact]")
@click.option("--dtype", help="auto, bfloat16, float16 or float32.  [default: auto]")
@click.option("--max-batch", type=int, help="Most replies written at once.  [default: 64]")
@click.option("--backend", help="transformers, vllm or served.  [default: transformers]")
@click.option("--tensor-parallel", type=int, help="GPUs for each layer (vllm).  [default: 1]")
@click.option("--servers", help="Addresses of `eoh-esopt serve`, separated by commas (served).")
@click.option("--request-timeout", type=float, help="Seconds for one reply of a server.  [default: 120]")
@click.option("--trajectories", is_flag=True, default=None, help="Keep what is said in the episodes.")
@click.option("--skill", help="Markdown file of lessons that the prompts show.")
@click.option("--co-evolve", help="weights, skill, sequential or alternating: what is renewed.  [default: weights]")
@click.option("--skill-every", type=int, help="Generations behind one revision of the skill.  [default: 5]")
@click.option("--skill-check", type=int, help="Episodes of each task on either side of its check.  [default: 4]")
@click.option("--skill-lessons", type=int, help="Most trajectories it is learnt from.  [default: 16]")
@click.option("--skill-lines", type=int, help="Most lines of the skill.  [default: 80]")
@click.option("--skill-tokens", type=int, help="Most tokens of a reply of what revises it.  [default: 512]")
@click.option("--skill-model", help="Model of the endpoint that revises it.  [default: the model in training]")
@click.option("--skill-base-url", help="Address of that endpoint.")
@click.pass_context
def train(
    context: click.Context,
    /,
    adapter: str | None,
    presets: tuple[str, ...],
    out: Path | None,
    resume_folder: Path | None,
    list_presets: bool,
    **settings: Any,
) -> None:
    """Train an agent on ADAPTER: the name of a shipped one, such as sudoku or math, or a Python file that defines one.

    Options that are not listed are the adapter's, such as --masks of sudoku. They come after ADAPTER.

    \b
    Examples:
      eoh-esopt train sudoku --masks 15 --model Qwen3.5-4B --out runs/sudoku
      eoh-esopt train sudoku --preset sudoku-15 --preset constant-sigma --out runs/constant
      eoh-esopt train webarena --source local --preset webarena-small --out runs/web
      eoh-esopt train my_adapter.py --model SmolLM2-135M-Instruct --scope norms --generations 20 \\
          --directions 8 --batch 8 --out runs/mine
      eoh-esopt train --resume runs/sudoku
      eoh-esopt train --list-presets
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if list_presets:
        _list_presets()
    elif resume_folder is not None:
        _refuse(context, adapter, presets, out, given)
        _resume(resume_folder, {name: value for name, value in given.items() if name in _MOVABLE})
    elif adapter is None or out is None:
        missing = "ADAPTER" if adapter is None else "--out"
        raise UserError(f"{missing} is missing. A training needs an adapter, --model and --out; or --resume FOLDER.")
    else:
        _start(_checked(adapter), out, presets, given, adapter_settings(context.args))


def _checked(adapter: str) -> str:
    if adapter.startswith("-"):
        raise UserError(f"{adapter} comes before ADAPTER, or is no option. Name the adapter first, then its settings.")
    return adapter


def adapter_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """The adapter's settings from the options that a command does not know: `--name value`, `--name=value`, `--flag`.

    A setting called `data` is a path, as for a search, and is made absolute: a training may be resumed elsewhere.

    Raises:
        UserError: there is an argument that is no option.
    """
    from eoh_esopt.experiments.settings_files import read_value

    found: dict[str, Any] = {}
    left = list(arguments)
    while left:
        option = left.pop(0)
        if not option.startswith("--"):
            raise UserError(f"Unexpected argument {option!r}. Give one adapter, and its settings as --name value.")
        name, equals, value = option.removeprefix("--").partition("=")
        if not equals and left and not left[0].startswith("--"):
            value = left.pop(0)
        elif not equals:
            value = "true"
        found[name.replace("-", "_")] = read_value(value)
    return found | ({"data": str(Path(str(found["data"])).resolve())} if "data" in found else {})


def _start(adapter: str, out: Path, presets: Sequence[str], given: dict[str, Any], of_adapter: dict[str, Any]) -> None:
    from train_adapters.presets import TrainPreset, config_of, load_preset
    from train_adapters.registry import absolute
    from train_adapters.reports import watch
    from train_adapters.run import start

    layers = [*map(load_preset, presets), TrainPreset(given, of_adapter)]
    config = config_of(absolute(adapter), layers)
    with watch() as listener:
        summary = start(config, out, listener=listener, notify=listener.say)
    _print(out, summary)


def _resume(folder: Path, moved: Mapping[str, Any]) -> None:
    from train_adapters.reports import watch
    from train_adapters.run import resume

    with watch() as listener:
        summary = resume(folder, listener=listener, notify=listener.say, moved=moved)
    _print(folder, summary)


def _print(folder: Path, summary: Mapping[str, Any]) -> None:
    from rich.console import Console

    from eoh_esopt.engine.events import EVENTS, read_events
    from train_adapters.reports import print_summary

    generations = [event for event in read_events(folder) if event["event"] == "generation"]
    print_summary(Console(), summary, generations)
    click.echo(f"Log: {folder / EVENTS}")


def _list_presets() -> None:
    from train_adapters.presets import load_preset, preset_names

    for name in preset_names():
        click.echo(f"{name:16} {load_preset(name).about}")


def _refuse(
    context: click.Context, adapter: str | None, presets: Sequence[str], out: Path | None, given: Mapping[str, Any]
) -> None:
    """A resumed training keeps its settings: anything else given beside --resume is a mistake."""
    labels = [f"--{name.replace('_', '-')}" for name in given if name not in _MOVABLE]
    if adapter is not None:  # an option of an adapter's without one is taken for it
        labels.append(adapter if adapter.startswith("-") else "ADAPTER")
    labels += ["--preset"] * bool(presets) + ["--out"] * (out is not None) + context.args[:1]
    if labels:
        raise UserError(
            f"{labels[0]} cannot be given with --resume: a training keeps the settings it began with. "
            "Leave it out, or begin a new training with --out."
        )


@click.command("evaluate-agent", context_settings=OPEN)
@click.argument("adapter")
@click.option("--model", help="Name, hub id or folder.  [default: the history's]")
@click.option("--history", type=click.Path(path_type=Path), help="Folder or history.json of a training to apply first.")
@click.option("--split", default="test", show_default=True, help="train, val or test.")
@click.option("--repeats", type=int, default=3, show_default=True, help="Episodes of each task.")
@click.option("--limit", type=int, help="The first so many tasks.  [default: all]")
@click.option("--seed", type=int, help="Seed of the replies.  [default: the training's, or 20260701]")
@click.option("--temperature", type=float, help="[default: the training's, or 0.7]")
@click.option("--top-p", type=float, help="[default: the training's, or 0.8]")
@click.option("--top-k", type=int, help="[default: the training's, or 20]")
@click.option("--presence-penalty", type=float, help="[default: the training's, or 1.5]")
@click.option("--thinking", is_flag=True, default=None, help="Let models that can think do so before they answer.")
@click.option("--dtype", help="auto, bfloat16, float16 or float32.  [default: auto]")
@click.option("--max-batch", type=int, help="Most replies written at once.  [default: 64]")
@click.option("--backend", help="transformers, vllm, served or openai.  [default: transformers]")
@click.option("--servers", help="Addresses of `eoh-esopt serve`, separated by commas (served).")
@click.option("--base-url", help="Address of the endpoint (openai).")
@click.option("--skill", type=click.Path(path_type=Path), help="Markdown file of lessons that the prompts show.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write Pass@k over k there, as .svg or .png.")
@TABLE_OR_JSON
@click.pass_context
def evaluate_agent(
    context: click.Context,
    /,
    adapter: str,
    history: Path | None,
    split: str,
    repeats: int,
    limit: int | None,
    seed: int | None,
    plot: Path | None,
    form: str,
    thinking: bool | None,
    skill: Path | None,
    **others: Any,
) -> None:
    """Play the tasks of ADAPTER several times each: mean reward, Mean@k and Pass@k, intervals over tasks.

    Seed and sampling are those of the training whose --history is given, so that its evaluations come out again.

    \b
    Examples:
      eoh-esopt evaluate-agent sudoku --masks 5 --model SmolLM2-135M-Instruct --split test --repeats 3
      eoh-esopt evaluate-agent sudoku --masks 5 --history runs/sudoku --repeats 32 --plot pass-at-k.svg
      eoh-esopt evaluate-agent sudoku --masks 15 --history runs/sudoku --format json
      eoh-esopt evaluate-agent my_adapter.py --model ./adapted --split val --limit 16
    """
    from rich.console import Console
    from rich.progress import Progress, track

    from train_adapters.agent_evaluation import AgentRequest, evaluate_agent, training_of
    from train_adapters.failures import failure_lines
    from train_adapters.pass_at_k import as_record, curve
    from train_adapters.pass_at_k_report import check_plot, print_curve, write_plot
    from train_adapters.registry import absolute
    from train_adapters.reports import as_json, evaluation_line
    from train_adapters.skills.versions import used

    check_plot(plot)
    drawn = {name: others.pop(name) for name in ("temperature", "top_p", "top_k", "presence_penalty")}
    trained = training_of(history)
    seed = trained.seed if seed is None else seed
    request = AgentRequest(
        adapter=absolute(_checked(adapter)),
        adapter_settings=adapter_settings(context.args),
        split=split,
        repeats=repeats,
        limit=limit,
        seed=seed,
        sampling=replace(trained.sampling, **{name: one for name, one in drawn.items() if one is not None}),
        thinking=trained.thinking if thinking is None else thinking,
        history=history,
        model={name: value for name, value in others.items() if value is not None},
        skill=skill,
    )
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("episodes", total=None)
        found = evaluate_agent(
            request,
            told=lambda count: progress.advance(bar, count),
            notify=lambda text: console.print(text, markup=False, highlight=False),
            progress=lambda updates: track(updates, "Updates", console=console, disable=not console.is_terminal),
        )
    points = curve(found, seed)
    if form == "json":
        click.echo(as_json(as_record(found, points) | used(skill)))
    else:
        click.echo(f"{split}: {evaluation_line(found)}; {found.tokens:,} tokens")
        for group, text in failure_lines(found.failures):
            click.echo(f"{group}: {text}")
        print_curve(Console(), found, points)
    if plot is not None:
        write_plot(plot, found, points)
