"""`eoh-esopt replay`: make a run's weights again from its history, and save them."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from operators.errors import UserError


@click.command()
@click.argument("run_folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--save", type=click.Path(path_type=Path), help="Write the adapted weights here as a checkpoint.")
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
    from eoh_esopt.engine.history import load_history
    from eoh_esopt.engine.replay import replay_history

    console = Console()
    if save is not None:
        _check_free(save)
    history = load_history(run_folder)
    adapted = replay_history(
        history, model or history.model, lambda updates: track(updates, "Updates", console=console)
    )
    console.print(f"base weights   {history.base_checksum}")
    console.print(f"after {len(history.updates):3} updates {adapted.checksum}")
    console.print(adapted.verdict)
    if save is not None:
        try:
            save.mkdir(parents=True, exist_ok=True)
            adapted.model.save(save, float32=float32)
        except OSError as error:
            raise UserError(f"Cannot save to {save}: {error.strerror or error}. Choose another --save.") from error
        console.print(f"Saved to {save}", markup=False, highlight=False, soft_wrap=True)


def _check_free(save: Path) -> None:
    """Refuse a folder that cannot take a checkpoint, before minutes are spent on one."""
    try:
        if save.exists() and (not save.is_dir() or any(save.iterdir())):
            raise UserError(f"{save} is not empty. Choose another --save.")
        nearest = next(path for path in (save, *save.absolute().parents) if path.exists())
    except OSError as error:
        raise UserError(f"Cannot save to {save}: {error.strerror}. Choose another --save.") from error
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise UserError(f"Cannot save to {save}: {nearest} cannot be written to. Choose another --save.")
