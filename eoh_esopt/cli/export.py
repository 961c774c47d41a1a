"""`eoh-esopt export`: adapted weights as a model folder that transformers and vLLM load."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track


@click.command()
@click.option(
    "--history", "source", required=True, type=click.Path(path_type=Path), help="A run's folder, or its history.json."
)
@click.option("--model", help="The base model, when it is elsewhere now.  [default: the run's]")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="New folder for the model.")
@click.option("--float32", is_flag=True, help="Write the exact float32 weights instead of the run's dtype.")
@click.option("--push", "repo", metavar="ORG/NAME", help="Also upload it to the Hugging Face hub, privately.")
def export(source: Path, model: str | None, out: Path, float32: bool, repo: str | None) -> None:
    """Write the adapted weights of a run as a model folder: safetensors, configuration, tokenizer and model card.

    The weights are made again from the base model and the history, and their hash is checked. The folder loads wherever
    the base model does.

    \b
    Examples:
      eoh-esopt export --history runs/a -o adapted
      eoh-esopt export --history runs/a/history.json --model ./base -o adapted --float32
      eoh-esopt export --history runs/a -o adapted --push my-name/adapted
    """
    from eoh_esopt.engine.export import check_free
    from eoh_esopt.engine.export import export as write
    from eoh_esopt.engine.history import load_history
    from eoh_esopt.engine.replay import replay_history
    from eoh_esopt.models.push import check_push, push

    console = Console()
    check_free(out, "--out")
    history = load_history(source)
    if repo is not None:
        check_push(repo)
    base = model or history.model
    adapted = replay_history(history, base, lambda updates: track(updates, "Updates", console=console))
    console.print(adapted.verdict)
    command = export_command(source, base, out, float32)
    write(adapted, history, source, out, base=base, name=repo or out.resolve().name, command=command, float32=float32)
    console.print(f"Saved to {out}", markup=False, highlight=False, soft_wrap=True)
    if repo is not None:
        console.print(f"Pushed to {push(out, repo)}", markup=False, highlight=False, soft_wrap=True)


def export_command(source: Path, base: str, out: Path, float32: bool) -> str:
    """The command as a card shows it: paths without the folders they lie in, which are nobody else's business."""
    model = Path(base).name if Path(base).is_dir() else base
    names = {"--history": source.resolve().name, "--model": model, "-o": out.resolve().name}
    parts = ["eoh-esopt", "export", *(part for pair in names.items() for part in pair)]
    return shlex.join([*parts, "--float32"] if float32 else parts)
