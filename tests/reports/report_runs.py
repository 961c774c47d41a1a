"""Small real runs for the tests of the report: the engine's own loop and log, a scripted model, the real sandbox."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.batches import Parts
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.history import History
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.methods import operators_of
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.run import note_end, note_start
from eoh_esopt.engine.search import Search
from eoh_esopt.models.protocol import Request
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from eoh_esopt.testing.scripted_model import ScriptedModel, Writer
from operators.momentum import momentum
from operators.task import Task
from problems import registry

SMALL = 135_000_000
SIZES = {"tsp_construct": {"n_instances": 4, "size": 12}, "kp_construct": {"n_instances": 4, "size": 20}}
CEILINGS = {"tsp_construct": 2.5, "kp_construct": 9.0}

_BODIES: dict[str, Callable[[float], str]] = {
    "tsp_construct": lambda weight: (
        "    near = distance_matrix[current_node][unvisited_nodes]\n"
        "    back = distance_matrix[destination_node][unvisited_nodes]\n"
        f"    return unvisited_nodes[np.argmin(near - {weight} * back)]\n"
    ),
    "kp_construct": lambda weight: (
        f"    score = values / (weights + 1e-9) ** {weight}\n"
        "    return np.argmax(np.where(weights <= remaining_capacity + 1e-12, score, -np.inf))\n"
    ),
}


def reply(task: Task, idea: str, body: str) -> str:
    """A reply as the prompts ask for it."""
    return f"{{{idea}}}\n```python\nimport numpy as np\n\n{task.signature}\n{body}```\n"


def mixed(problem: str) -> Writer:
    """Replies of every kind: valid, failing, broken, copies; which one depends on all that it may depend on."""
    task = registry.get(problem).task

    def write(_request: Request, number: int) -> str:
        menu = ("I would go to the nearest.", reply(task, "Fail.", "    return unknown\n"), "```python\ndef f(:\n```")
        kind, weight = number % 7, number // 7 % 60 / 50
        return menu[kind] if kind < len(menu) else reply(task, f"Weight {weight}.", _BODIES[problem](weight))

    return write


def prose(_request: Request, _number: int) -> str:
    """No program at all."""
    return "I would go to the nearest node."


@dataclass
class Maker:
    """Makes runs below a folder.

    Attributes:
        folder: theirs.
        sandboxes: closes them at the end.
    """

    folder: Path
    sandboxes: ExitStack
    _evaluators: dict[str, Evaluator] = field(default_factory=dict)

    def run(self, name: str, problem: str = "tsp_construct", write: Writer | None = None, **changes: Any) -> Path:
        """A finished run in the folder `name`; its model writes by `write`."""
        settings = {"budget": 15, "population": 2, "directions": 3, "seed": 1, **changes}
        config = RunConfig(problem, "scripted", **settings).resolved(SMALL)
        folder = self.folder / name
        folder.mkdir(parents=True)
        model = ScriptedModel(mixed(problem) if write is None else write)
        evaluator = self._evaluator(problem)
        loaded = ProblemSpec.named(problem).build()
        with events.open_log(folder) as log:
            facts = note_start(
                log,
                "start",
                config,
                model,
                "0" * 64,
                isolation=evaluator.isolation_level,
                measure=loaded.measure,
                maximise=loaded.maximise,
                references={"a baseline": CEILINGS[problem] * 1.3, "optimum": CEILINGS[problem]},
                ceiling="optimum",
            )
            parts = Parts(
                task=loaded.task,
                operators=operators_of(config, loaded.task),
                momentum=momentum(config.momentum),
                model=model,
                evaluator=evaluator,
                log=log,
                recorded=Recorded([]),
                listener=Listener(),
                clock=lambda: 60.0,
            )
            search = Search(config, parts, History("scripted", "0" * 64, config.scope, config.restore, "float32"))
            search.run()
            note_end(log, search, model, facts, 60.0)
        return folder

    def unfinished(self, name: str, batches: int = 4, **settings: Any) -> Path:
        """A run that was killed after some batches."""
        folder = self.run(name, **settings)
        path = folder / events.EVENTS
        lines = path.read_text().splitlines(keepends=True)
        ends = [number for number, line in enumerate(lines, 1) if line.startswith('{"event": "batch"')]
        path.write_text("".join(lines[: ends[batches - 1]]))
        (folder / events.SUMMARY).unlink()
        return folder

    def _evaluator(self, problem: str) -> Evaluator:
        if problem not in self._evaluators:
            spec = ProblemSpec.named(problem, **SIZES[problem])
            evaluator = Evaluator(spec, workers=1, limits=Limits(wall_s=10))
            self._evaluators[problem] = self.sandboxes.enter_context(evaluator)
        return self._evaluators[problem]
