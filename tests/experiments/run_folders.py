"""Folders of runs for tests of comparisons: logs as the engine writes them, with the values that a test asks for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import BEST, EVENTS
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.experiments.run_record import RunRecord, read_run

NEAREST = (
    "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
    "    return unvisited_nodes[0]\n"
)
SEED_OBJECTIVE = 7.0
REFERENCES = {"nearest neighbour": 7.0, "optimum": 5.7}


def write_run(
    folder: Path,
    *,
    seed: int,
    best: float | None,
    method: str = "eoh",
    budget: int = 40,
    finished: bool = True,
    checksum: str = "a" * 64,
    facts: dict[str, Any] | None = None,
    spent: dict[str, int] | None = None,
    seeds: tuple[float | None, ...] = (SEED_OBJECTIVE,),
    given: tuple[float | None, ...] = (),
    code: str = NEAREST,
    problem: str = "tsp_construct",
    **settings: Any,
) -> RunRecord | None:
    """Write a run: what was there before the search, one batch that finds `best`, the end.

    Args:
        best: objective of the search, lower is better; None where nothing was valid.
        facts: of the start, over the usual ones.
        spent: counters of the ledger, over the usual ones.
        seeds: objectives of the seed heuristics.
        given: objectives of the programs of `init_from`.
        settings: of the run's config, over small ones.

    Returns:
        The run as it is read back; None where it is not finished.
    """
    config = RunConfig(
        problem=problem, model="scripted", method=method, budget=budget, seed=seed, population=4, **settings
    ).resolved(135_000_000)
    start = {
        "event": "start",
        "config": asdict(config),
        "model": {"model": "scripted"},
        "base_checksum": checksum,
        "measure": "tour length",
        "maximise": False,
        "references": REFERENCES,
        "ceiling": "optimum",
        **(facts or {}),
    }
    tokens = {"model_calls": budget + 4, "prompt_tokens": 100 * budget, "new_tokens": 20 * budget}
    ledger = Ledger(**{"candidates": budget, "evaluations": budget, "valid": budget // 2, **tokens, **(spent or {})})
    events = [start, _batch(-1, "seed", seeds, Ledger())]
    if given:
        events.append(_batch(-1, "given", given, Ledger()))
    before = [one for one in (*seeds, *given) if one is not None]
    found = min([*before, *([] if best is None else [best])], default=None)
    events.append(_batch(0, "m1", (best,), ledger) | {"best": best if best != best else found})
    if finished:
        events.append({"event": "end", "best": None, "ledger": ledger.as_dict()})
    folder.mkdir(parents=True)
    (folder / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    (folder / BEST).write_text(code, encoding="utf-8")
    return read_run(folder) if finished else None


def write_arm(root: Path, values: dict[int, float], **settings: Any) -> list[RunRecord]:
    """Write the runs of an arm, a folder for each seed."""
    found = [write_run(root / f"seed-{seed}", seed=seed, best=best, **settings) for seed, best in values.items()]
    return [one for one in found if one is not None]


def _batch(generation: int, operator: str, objectives: tuple[float | None, ...], ledger: Ledger) -> dict[str, Any]:
    return {
        "event": "batch",
        "generation": generation,
        "operator": operator,
        "ids": [0, len(objectives) - 1],
        "statuses": ["raised" if one is None else "ok" for one in objectives],
        "duplicate_of": [None] * len(objectives),
        "objectives": list(objectives),
        "best": min((one for one in objectives if one is not None), default=None),
        "seconds": 1.5,
        "ledger": ledger.as_dict(),
    }
