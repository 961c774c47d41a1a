"""A scripted model and the pieces of a small search: what the tests of the search's loop share. No weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.engine.ahead import Evaluates, EvaluatesArriving
from eoh_esopt.engine.batches import Parts
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import EVENTS, Event, open_log, read_events
from eoh_esopt.engine.history import History
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.methods import operators_of
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.search import Search
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.sandbox.feed import Feed
from operators.momentum import momentum
from operators.records import Direction, Outcome, Status, Update
from problems.tsp_construct import TASK

Writer = Callable[[Request, str], str]
"""The text of a reply, from what is asked for and the checksum of the weights."""

HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
SMALL = 135_000_000


def reply_text(idea: str, body: str) -> str:
    """A reply as the prompts ask for it."""
    return f"{{{idea}}}\n```python\nimport numpy as np\n\n{HEAD}    {body}\n```\n"


def heuristic(weight: float) -> str:
    """A reply with a valid heuristic; another weight is another program."""
    near = "distance_matrix[current_node][unvisited_nodes]"
    back = "distance_matrix[destination_node][unvisited_nodes]"
    return reply_text(
        f"Weigh the way back by {weight}.", f"return unvisited_nodes[np.argmin({near} - {weight} * {back})]"
    )


BROKEN = reply_text("Fail.", "return unknown_name")
NO_PROGRAM = "I would go to the nearest node."
_MENU = (NO_PROGRAM, BROKEN, "```python\ndef select_next_node(:\n```", TASK.seeds[0].code)


def mixed(request: Request, weights: str) -> str:
    """Valid, failing, broken and duplicate replies; which one depends on everything it may depend on."""
    place = repr((request.prompt, request.seed, request.direction, weights))
    number = int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "little")
    if "short insights" in request.prompt:
        return f"- Weigh the way back by {number % 7}.\n- Do not fail."
    kind = number % 10
    return _MENU[kind] if kind < len(_MENU) else heuristic((number >> 8) % 60 / 50)


class ScriptedModel:
    """Writes replies from a function. Its weights are the updates it was told to apply.

    Args:
        write: the function.
        per_row: whether one batch holds all requests, or only those of one direction.
    """

    def __init__(self, write: Writer = mixed, *, per_row: bool = True) -> None:
        self._write = write
        self._per_row = per_row
        self.updates: list[Update] = []
        self.requests: list[Request] = []

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        if self._per_row:
            return [list(range(len(requests)))]
        return [list(group) for _, group in groupby(range(len(requests)), lambda i: requests[i].direction)]

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.requests += requests
        texts = [self._write(request, self.checksum()) for request in requests]
        return [Reply(text, len(one.prompt), len(text), False) for one, text in zip(requests, texts, strict=True)]

    def apply(self, update: Update) -> None:
        self.updates.append(update)

    def checksum(self) -> str:
        return hashlib.sha256(repr(self.updates).encode()).hexdigest()

    @property
    def parameters(self) -> int:
        return 1

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        raise NotImplementedError

    def drift(self) -> float:
        return 0.0

    def save(self, folder: Path, *, float32: bool = False) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing to let go of."""

    def describe(self) -> dict[str, Any]:
        return {"model": "scripted"}


class Failing:
    """An evaluator that loses some candidates for reasons of ours.

    Args:
        inner: evaluates the others.
        loses: whether the candidate with this source is lost.
    """

    def __init__(self, inner: Evaluates, loses: Callable[[str], bool]) -> None:
        self._inner = inner
        self._loses = loses
        self.seen: list[str] = []

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        self.seen += codes
        return self._losing(self._inner.evaluate(codes), codes)

    def evaluate_arriving(self, feed: Feed) -> Iterator[tuple[int, Outcome]]:
        assert isinstance(self._inner, EvaluatesArriving)
        codes: list[str] = []
        take = feed.take

        def noted() -> list[str]:
            arrived = take()
            codes.extend(arrived)
            self.seen += arrived
            return arrived

        feed.take = noted  # type: ignore[method-assign]
        return self._losing(self._inner.evaluate_arriving(feed), codes)

    def _losing(self, found: Iterator[tuple[int, Outcome]], codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        for position, outcome in found:
            lost = self._loses(codes[position])
            yield position, Outcome(Status.INFRASTRUCTURE, detail="The worker was lost.") if lost else outcome


def settings(**changes: Any) -> RunConfig:
    """A search of two generations, the second cut short."""
    small = {"budget": 13, "population": 2, "directions": 3, "seed": 1}
    return RunConfig("tsp_construct", "scripted", **{**small, **changes}).resolved(SMALL)


def run_search(
    folder: Path,
    evaluator: Evaluates,
    config: RunConfig | None = None,
    model: ScriptedModel | None = None,
    listener: Listener | None = None,
) -> Search:
    """Begin the search in the folder, or go on with it; its weights are `model`'s afterwards."""
    config = settings() if config is None else config
    folder.mkdir(exist_ok=True)
    earlier = read_events(folder) if (folder / EVENTS).exists() else []
    with open_log(folder) as log:
        parts = Parts(
            task=TASK,
            operators=operators_of(config, TASK),
            momentum=momentum(config.momentum),
            model=ScriptedModel() if model is None else model,
            evaluator=evaluator,
            log=log,
            recorded=Recorded(earlier),
            listener=Listener() if listener is None else listener,
            clock=lambda: 0.0,
        )
        search = Search(config, parts, History("scripted", "0" * 64, config.scope, config.restore, "float32"))
        search.run()
    return search


def canonical(events: Sequence[Event]) -> list[Event]:
    """The events without times, the outcomes of each batch in the order of ids: they come as candidates finish."""
    events = [{name: value for name, value in event.items() if name != "timings"} for event in events]
    ordered: list[Event] = []
    for is_outcome, run in groupby(events, lambda event: event["event"] == "outcome"):
        batch = list(run)
        ordered += sorted(batch, key=lambda event: int(event["id"])) if is_outcome else batch
    return ordered


def of_kind(folder: Path, kind: str) -> list[Event]:
    """The run's events of one kind."""
    return [event for event in read_events(folder) if event["event"] == kind]


def truncate_log(source: Path, folder: Path, lines: int, *, torn: bool = False) -> None:
    """A new folder whose log has the first lines of another's, and half of the next where it is torn."""
    folder.mkdir()
    whole = (source / EVENTS).read_text().splitlines(keepends=True)
    rest = "".join(whole[lines : lines + 1])
    (folder / EVENTS).write_text("".join(whole[:lines]) + rest[: len(rest) // 2 if torn else 0])


def dump(search: Search) -> str:
    """All that a search ends with, as text to compare."""
    population = [repr(candidate) for candidate in search.population]
    return json.dumps([population, search.history.to_json(), search.ledger.as_dict()], indent=1)
