"""A run of ours as results of EoH: its populations in the files that EoH's use_seed and use_continue read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.config import RunConfig, load_config
from eoh_esopt.engine.given import given_programs
from eoh_esopt.engine.replies import parse_reply
from eoh_esopt.hosts.eoh_common import KEY, host_objective
from eoh_esopt.hosts.reading import NO_IDEA
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Candidate
from operators.task import Task


def export_populations(run: Path, out: Path) -> list[Path]:
    """Write the population after each generation, the start population as generation 0.

    Args:
        run: folder of the run.
        out: folder that takes `results/pops` and `results/pops_best`.

    Returns:
        The files of the populations, oldest first.

    Raises:
        UserError: the folder holds no run of ours, or none with a population; or nothing can be written.
    """
    config, log = load_config(run / events.CONFIG), events.read_events(run)
    if log and "host" in log[0]:
        raise UserError(
            f"{run} belongs to a search of {log[0]['host']['name']}, which keeps its populations itself, "
            f"in {run.parent}."
        )
    task = ProblemSpec.named(config.problem, data=config.data).build().task
    populations = _populations(log, _candidates(log, config, task, run))
    if not populations:
        raise UserError(f"{run} has no population yet. Go on with it: eoh-esopt run --resume {run}")
    written = []
    for generation, population in enumerate(populations):
        individuals = [_individual(one, task) for one in population]
        name = f"population_generation_{generation}.json"
        written.append(_write(out / "results" / "pops" / name, individuals))
        _write(out / "results" / "pops_best" / name, individuals[0])
    return written


def _candidates(log: list[events.Event], config: RunConfig, task: Task, run: Path) -> dict[int, Candidate]:
    """The valid candidates of a run by id."""
    programs: dict[int, str] = {}
    found: dict[int, Candidate] = {}
    known = {"seed": task.seeds, "given": given_programs(config, run)}
    for event in log:
        if event["event"] == "replies":
            for one in event["candidates"]:
                programs[one["id"]] = parse_reply(one["text"], task.function).code or ""
        elif event["event"] == "batch":
            ids = range(event["ids"][0], event["ids"][1] + 1)
            for place, (number, idea, objective) in enumerate(
                zip(ids, event["ideas"], event["objectives"], strict=True)
            ):
                name = event["operator"]
                code = known[name][place].code if name in known else programs[number]
                if objective is not None:
                    found[number] = Candidate(number, name, idea, code, objective)
    return found


def _populations(log: list[events.Event], candidates: dict[int, Candidate]) -> list[list[Candidate]]:
    """The last population of each generation that was begun."""
    last = {event["generation"]: event["population"] for event in log if event["event"] == "batch"}
    return [[candidates[number] for number in last[generation]] for generation in sorted(last) if last[generation]]


def _individual(one: Candidate, task: Task) -> dict[str, Any]:
    code = one.code.strip()
    if task.imports not in code:
        code = f"{task.imports}\n\n{code}"
    return {
        "algorithm": one.idea or NO_IDEA,
        "code": code,
        "objective": host_objective(one.objective),
        "other_inf": {KEY: {"id": one.id, "operator": one.operator, "objective": one.objective}},
    }


def _write(path: Path, content: Any) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make {path.parent}: {error.strerror}. Choose another folder.") from error
    events.write_atomically(path, json.dumps(content, indent=5, allow_nan=False) + "\n")
    return path
