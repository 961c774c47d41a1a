"""What a finished run prints: the best heuristic, what it is worth, what it cost and where everything is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from eoh_esopt.engine.events import BEST, EVENTS, HISTORY
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.timings import Timings
from eoh_esopt.experiments.flops import ledger_flops
from eoh_esopt.reports.objective import Scale
from operators.errors import UserError


def print_summary(folder: Path, summary: dict[str, Any], console: Console | None = None) -> None:
    """Print a run's summary.

    Raises:
        UserError: the file of the best heuristic is gone.
    """
    console = console or Console()
    best = summary["best"]
    console.rule("best heuristic")
    console.print(Syntax(_best_heuristic(folder / BEST), "python", background_color="default", word_wrap=True))
    console.print(_objectives(best["objective"], Scale.of(summary)))
    for line in _costs(summary):
        console.print(line, markup=False, highlight=False)
    if summary.get("rank") is not None:
        console.print(f"directions with {summary['noise']} noise of rank {summary['rank']}, not the paper's full noise")
    console.print(f"weights {summary['weights_before'][:16]} before, {summary['weights_after'][:16]} after")
    if summary.get("drift"):
        console.print(f"drift of the weights {summary['drift']:.3g} (root mean square), from restore mode 'subtract'")
    for name, what in ((BEST, "best heuristic"), (HISTORY, "history of the weights"), (EVENTS, "event log")):
        console.print(f"{what:24} {folder / name}", markup=False, highlight=False, soft_wrap=True)


def _costs(summary: dict[str, Any]) -> Iterator[str]:
    """What was spent: candidates, model, weights, time. Older summaries lack some of it."""
    counted, ledger = summary["ledger"], Ledger.of(summary["ledger"])
    candidates = max(ledger.candidates, 1)
    shares = {"parsed": ledger.parsed, "duplicates": ledger.duplicates, "valid": ledger.valid, "new": ledger.new}
    parts = [f"{name} {count} ({count / candidates:.0%})" for name, count in shares.items() if name in counted]
    yield f"candidates {ledger.candidates}: {', '.join(parts)}; evaluations {ledger.evaluations}"
    flops = ledger_flops(ledger, summary.get("parameters"))
    work = "" if flops is None else f", {flops.forward:.3g} model FLOPs"
    tokens = f"tokens {ledger.prompt_tokens} read and {ledger.new_tokens} written"
    yield f"model calls {ledger.model_calls}, {tokens}{work}"
    reasons = "; ".join(f"{count}: {reason}" for reason, count in ledger.skip_reasons.items())
    skipped = f"{ledger.skips} ({reasons})" if reasons else str(ledger.skips)
    times = f": {_times(Timings.of(summary['timings']))}" if "timings" in summary else ""
    yield f"updates applied {ledger.updates}, skipped {skipped}; {summary['seconds'] / 60:.1f} minutes{times}"


def _times(timings: Timings) -> str:
    seconds = {
        "writing": timings.generate,
        "perturbing": timings.perturb,
        "restoring": timings.restore,
        "updating": timings.update,
        "waiting for evaluations": timings.evaluate,
    }
    return ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items() if value is not None)


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
