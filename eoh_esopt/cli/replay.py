"""`eoh-esopt replay`: make a run's weights again from its history, and save them."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from eoh_esopt.cli.export import export_command


@click.command()
@click.argument("run_folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--save", type=click.Path(path_type=Path), help="Also write them here, as `eoh-esopt export` does.")
@click.option("--model", help="The base model, when it is elsewhere now.  [default: the run's]")
@click.option("--float32", is_flag=True, help="Save the exact float32 weights instead of the run's dtype.")
def replay(run_folder: Path, save: Path | None, model: str | None, float32: bool) -> None:
    """Make the adapted weights of RUN again from the base model and the history, and check their hash.

    \b
    Examples:
      eoh-esopt replay runs/a
      eoh-esopt replay runs/a --save adapted
      eoh-esopt replay runs/a/history.json --model ./base --save adapted --float32
    """
    from eoh_esopt.engine.export import check_free, export
    from eoh_esopt.engine.history import load_history
    from eoh_esopt.engine.replay import replay_history

    console = Console()
    if save is not None:
        check_free(save, "--save")
    history = load_history(run_folder)
    base = model or history.model
    adapted = replay_history(history, base, lambda updates: track(updates, "Updates", console=console))
    console.print(f"base weights   {history.base_checksum}")
    console.print(f"after {len(history.updates):3} updates {adapted.checksum}")
    console.print(adapted.verdict)
    if save is not None:
        name, command = save.resolve().name, export_command(run_folder, base, save, float32)
        export(adapted, history, run_folder, save, base=base, name=name, command=command, float32=float32)
        console.print(f"Saved to {save}", markup=False, highlight=False, soft_wrap=True)
