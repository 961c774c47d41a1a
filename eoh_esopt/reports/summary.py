"""What a finished run prints: the best heuristic, what it is worth, what it cost and where everything is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from eoh_esopt.engine.events import BEST, EVENTS, HISTORY
from eoh_esopt.reports.objective import Scale
from operators.errors import UserError


def print_summary(folder: Path, summary: dict[str, Any], console: Console | None = None) -> None:
    """Print a run's summary.

    Raises:
        UserError: the file of the best heuristic is gone.
    """
    console = console or Console()
    best, ledger = summary["best"], summary["ledger"]
    console.rule("best heuristic")
    console.print(Syntax(_best_heuristic(folder / BEST), "python", background_color="default", word_wrap=True))
    console.print(_objectives(best["objective"], Scale.of(summary)))
    candidates = max(ledger["candidates"], 1)
    console.print(
        f"candidates {ledger['candidates']}, valid {ledger['valid']} ({ledger['valid'] / candidates:.0%}), "
        f"new {ledger['new']} ({ledger['new'] / candidates:.0%}); evaluations {ledger['evaluations']}, model calls "
        f"{ledger['model_calls']}, tokens {ledger['prompt_tokens']} read and {ledger['new_tokens']} written",
        highlight=False,
    )
    console.print(
        f"updates applied {ledger['updates']}, skipped {ledger['skips']}; {summary['seconds'] / 60:.1f} minutes"
    )
    if summary.get("rank") is not None:
        console.print(f"directions with {summary['noise']} noise of rank {summary['rank']}, not the paper's full noise")
    console.print(f"weights {summary['weights_before'][:16]} before, {summary['weights_after'][:16]} after")
    if summary.get("drift"):
        console.print(f"drift of the weights {summary['drift']:.3g} (root mean square), from restore mode 'subtract'")
    for name, what in ((BEST, "best heuristic"), (HISTORY, "history of the weights"), (EVENTS, "event log")):
        console.print(f"{what:24} {folder / name}", markup=False, highlight=False, soft_wrap=True)


def _best_heuristic(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"Cannot read {path}: {error}. Restore the run's folder from a copy.") from error


def _objectives(objective: float, scale: Scale) -> Table:
    table = Table(title=scale.title, title_justify="left")
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_column(f"gap to {scale.ceiling}" if scale.ceiling else "gap", justify="right")
    rows = {**scale.references, "best heuristic found": scale.natural(objective)}
    for name, value in sorted(rows.items(), key=lambda row: row[1], reverse=scale.maximise):
        table.add_row(name, f"{value:.4f}", scale.gap(value))
    return table
