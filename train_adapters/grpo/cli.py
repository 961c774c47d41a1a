"""`eoh-esopt compare-training`: a thin layer over the comparison of evolution strategies and GRPO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eoh_esopt.cli.options import TABLE_FORMATS
from operators.errors import UserError
from train_adapters.cli import OPEN, adapter_settings

if TYPE_CHECKING:
    from train_adapters.grpo.comparison import TrainingComparison


@click.command("compare-training", context_settings=OPEN)
@click.argument("adapter", required=False)
@click.option("--preset", "presets", multiple=True, help="matched-budget, matched-budget-small or a .toml file.")
@click.option("--model", help="Name, hub id or folder.  [default: the preset's]")
@click.option("--out", type=click.Path(path_type=Path), help="New folder for both arms.")
@click.option("--resume", "resumed", type=click.Path(path_type=Path), help="Go on with the comparison there.")
@click.option("--seed", type=int, help="Seed of every random stream.  [default: the preset's]")
@click.option("--generations", type=int, help="Updates of evolution strategies.")
@click.option("--directions", type=int, help="Directions of one update, G.")
@click.option("--batch", type=int, help="Tasks that every direction plays in a generation.")
@click.option("--steps", type=int, help="Steps of GRPO.  [default: what spends the same rollouts]")
@click.option("--prompts", type=int, help="Tasks of a step.")
@click.option("--group", type=int, help="Episodes of each of them.")
@click.option("--force", is_flag=True, help="Compare different budgets; they are labelled so.")
@TABLE_FORMATS
@click.pass_context
def compare_training(
    context: click.Context,
    /,
    adapter: str | None,
    presets: tuple[str, ...],
    out: Path | None,
    resumed: Path | None,
    force: bool,
    form: str,
    **settings: Any,
) -> None:
    """Train on ADAPTER by evolution strategies and by GRPO at the same number of rollouts, and put both side by side.

    Needs trl: pip install 'eoh-esopt[grpo]'. Other settings come from a preset, with those of GRPO under [grpo].
    Options that are not listed are the adapter's, and come after ADAPTER.

    \b
    Examples:
      eoh-esopt compare-training sudoku --preset matched-budget --out runs/matched
      eoh-esopt compare-training my_adapter.py --preset matched-budget-small --out runs/small
      eoh-esopt compare-training --resume runs/small -f md
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if resumed is not None:
        _refuse(adapter, presets, out, force, given, context.args)
    elif adapter is None or out is None:
        missing = "ADAPTER" if adapter is None else "--out"
        raise UserError(f"{missing} is missing. A comparison needs an adapter, --preset and --out; or --resume FOLDER.")
    elif adapter.startswith("-"):
        raise UserError(f"{adapter} comes before ADAPTER, or is no option. Name the adapter first, then its settings.")
    _print(_run(adapter, presets, out, resumed, force, given, context.args), form)


_OF_GRPO = ("steps", "prompts", "group")


def _run(
    adapter: str | None,
    presets: Sequence[str],
    out: Path | None,
    resumed: Path | None,
    force: bool,
    given: dict[str, Any],
    arguments: Sequence[str],
) -> TrainingComparison:
    from rich.console import Console

    from train_adapters.grpo.comparison import begin, go_on
    from train_adapters.presets import TrainPreset, config_of, grpo_of, load_preset
    from train_adapters.registry import absolute
    from train_adapters.reports import watch

    console = Console(stderr=True)  # the result alone goes to the standard output
    if resumed is not None:
        with watch(console) as listener:
            return go_on(resumed, listener=listener, notify=listener.say)
    assert adapter is not None
    assert out is not None
    of_grpo = {name: given.pop(name) for name in _OF_GRPO if name in given}
    layers = [*map(load_preset, presets), TrainPreset(given, adapter_settings(arguments), grpo=of_grpo)]
    config, grpo = config_of(absolute(adapter), layers), grpo_of(layers)
    with watch(console) as listener:
        return begin(config, grpo, out, force=force, listener=listener, notify=listener.say)


def _refuse(
    adapter: str | None,
    presets: Sequence[str],
    out: Path | None,
    force: bool,
    given: dict[str, Any],
    arguments: Sequence[str],
) -> None:
    """A resumed comparison keeps its settings: anything else given beside --resume is a mistake."""
    labels = [f"--{name}" for name in given] + ["ADAPTER"] * (adapter is not None) + ["--preset"] * bool(presets)
    labels += ["--out"] * (out is not None) + ["--force"] * force + list(arguments[:1])
    if labels:
        raise UserError(
            f"{labels[0]} cannot be given with --resume: a comparison keeps the settings it began with. "
            "Leave it out, or begin a new comparison with --out."
        )


def _print(comparison: TrainingComparison, form: str) -> None:
    from rich.console import Console

    from train_adapters.grpo.tables import WRITERS, as_table

    if form == "table":
        Console().print(as_table(comparison))
    else:
        click.echo(WRITERS[form](comparison))
