"""Logs of runs that never were: what was written down of each batch, without a model and without a sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.batches import START
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import EVENTS
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.timings import Timings
from operators.records import Skip, Update
from operators.update_fields import fields_of

SMALL = 135_000_000
ELEMENTS = 35_136


@dataclass
class MadeUp:
    """One batch.

    Attributes:
        objectives: one a candidate; None for one that failed, an objective that was there before for a copy.
        decision: what was done to the weights after it.
        unparsed: how many of those that failed had no program.
        seconds: of work on the run so far.
    """

    generation: int
    operator: str
    objectives: Sequence[float | None]
    decision: Update | Skip | None = None
    unparsed: int = 0
    timings: Timings | None = None
    seconds: float = 0.0


def write_log(folder: Path, batches: Sequence[MadeUp], *, old: bool = False, **settings: Any) -> Path:
    """A run's folder with a log of these batches.

    Args:
        old: as releases wrote it that counted and timed less.
        settings: of the run.
    """
    folder.mkdir(parents=True)
    config = RunConfig("tsp_construct", "made-up", **settings).resolved(SMALL)
    facts = {"measure": "tour length", "maximise": False, "references": {"optimum": 5.7}, "ceiling": "optimum"}
    model = {"model": "made-up", "parameters": SMALL, "scope_elements": ELEMENTS}
    events: list[dict[str, Any]] = [{"event": "start", "config": asdict(config), "model": model, **facts}]
    ledger, known, first = Ledger(), dict[float, int](), 0
    for batch in batches:
        events += [*_decision(batch, ledger), _batch(batch, ledger, known, first, old)]
        first += len(batch.objectives)
    (folder / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def _decision(batch: MadeUp, ledger: Ledger) -> list[dict[str, Any]]:
    where = {"generation": batch.generation, "operator": batch.operator}
    if isinstance(batch.decision, Update):
        ledger.updates += 1
        return [{"event": "update", **where, **fields_of(batch.decision)}]
    if isinstance(batch.decision, Skip):
        ledger.skip(batch.decision.reason)
        return [{"event": "skip", **where, **asdict(batch.decision)}]
    return []


def _batch(batch: MadeUp, ledger: Ledger, known: dict[float, int], first: int, old: bool) -> dict[str, Any]:
    ids = range(first, first + len(batch.objectives))
    originals = [None if one is None else known.setdefault(one, at) for at, one in enumerate(batch.objectives, first)]
    copies = [None if one == at else one for at, one in enumerate(originals, first)]
    failed = ["no_code"] * batch.unparsed + ["raised"] * len(ids)
    statuses = [failed.pop(0) if one is None else "ok" for one in batch.objectives]
    if batch.generation != START:
        ledger.candidates += len(ids)
        ledger.parsed += len(ids) - batch.unparsed
        ledger.duplicates += sum(one is not None for one in copies)
    counted, times = ledger.as_dict(), {} if batch.timings is None else {"timings": batch.timings.as_dict()}
    for name in ("parsed", "duplicates", "skip_reasons") if old else ():
        del counted[name]
    return {
        "event": "batch",
        "generation": batch.generation,
        "operator": batch.operator,
        "ids": [ids[0], ids[-1]],
        "statuses": statuses,
        "duplicate_of": copies,
        "objectives": list(batch.objectives),
        "best": min(known, default=None),
        "seconds": batch.seconds,
        "ledger": counted,
        **({} if old else times),
    }
