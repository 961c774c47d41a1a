"""Candidates are evaluated while the model writes the next ones, and nobody can tell from what is logged."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from scripted import ScriptedModel, canonical, dump, heuristic, of_kind, run_search, settings

from eoh_esopt.engine.ahead import Ahead, EvaluatesArriving
from eoh_esopt.engine.events import read_events
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.feed import Feed
from operators.records import Outcome
from problems.tsp_construct import TASK

SEEDS = [seed.code for seed in TASK.seeds]


class Batchwise:
    """An evaluator that takes whole batches only."""

    def __init__(self, inner: Evaluator) -> None:
        self._inner = inner

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        return self._inner.evaluate(codes)


class Telling(Batchwise):
    """Says when a candidate has its outcome."""

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner)
        self.finished = threading.Semaphore(0)

    def evaluate_arriving(self, feed: Feed) -> Iterator[tuple[int, Outcome]]:
        for one in self._inner.evaluate_arriving(feed):
            self.finished.release()
            yield one


class Patient(ScriptedModel):
    """Writes the replies of a direction only when those of the one before have been evaluated."""

    def __init__(self, evaluator: Telling) -> None:
        super().__init__(lambda request, weights: heuristic(request.seed % 997 / 997), per_row=False)
        self._finished = evaluator.finished
        self._written_under: object = None

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        direction = requests[0].direction
        if direction is not None and self._written_under is not None:
            assert self._finished.acquire(timeout=60), "the candidate before is not evaluated while others are written"
        self._written_under = direction
        return super().generate(requests)

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        self._written_under = None
        while self._finished.acquire(blocking=False):
            pass
        return super().batches(requests)


def test_candidates_run_while_the_next_are_written(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the sandbox is idle while the model writes, and the model while candidates run."""
    telling = Telling(evaluator)
    search = run_search(tmp_path / "run", telling, model=Patient(telling))
    assert search.ledger.updates > 0


@pytest.mark.parametrize("samples", [1, 2])
def test_nothing_differs_from_evaluating_afterwards(tmp_path: Path, evaluator: Evaluator, samples: int) -> None:
    """Else the same seed gives another run where evaluation overlaps."""
    config = settings(directions=4, samples_per_direction=samples, budget=30)
    both = [evaluator, Batchwise(evaluator)]
    searches = [
        run_search(tmp_path / str(number), one, config, ScriptedModel(per_row=False)) for number, one in enumerate(both)
    ]
    assert dump(searches[0]) == dump(searches[1])
    assert canonical(read_events(tmp_path / "0")) == canonical(read_events(tmp_path / "1"))
    assert searches[0].ledger.new < searches[0].ledger.valid, "a run without duplicates shows less"


class Backwards(ScriptedModel):
    """Writes the last direction first."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        return super().batches(requests)[::-1]


def test_of_equal_programs_the_first_is_run_in_whatever_order_they_are_written(
    tmp_path: Path, evaluator: Evaluator
) -> None:
    """Else ids, objectives and the number of evaluations depend on which server answers first."""
    config = settings(directions=6, budget=40)
    forwards = run_search(tmp_path / "forwards", evaluator, config, ScriptedModel(per_row=False))
    backwards = run_search(tmp_path / "backwards", evaluator, config, Backwards(per_row=False))
    assert dump(forwards) == dump(backwards)
    ran = [sorted(event["id"] for event in of_kind(tmp_path / name, "outcome")) for name in ("forwards", "backwards")]
    assert ran[0] == ran[1]


class Interrupted(ScriptedModel):
    """Ctrl-C before the second direction is written."""

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        if len({one.direction for one in self.requests if one.direction is not None}) == 1:
            raise KeyboardInterrupt
        return super().generate(requests)


def test_an_interrupted_batch_leaves_nothing_running(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a run that is stopped while candidates run hangs, or its evaluator cannot be used again."""
    with pytest.raises(KeyboardInterrupt):
        run_search(tmp_path / "run", evaluator, model=Interrupted(per_row=False))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("evaluate-ahead")]
    resumed = run_search(tmp_path / "run", evaluator, model=ScriptedModel(per_row=False))
    whole = run_search(tmp_path / "whole", evaluator, model=ScriptedModel(per_row=False))
    assert dump(resumed) == dump(whole)


class Broken(Batchwise):
    """Cannot evaluate anything."""

    def evaluate_arriving(self, feed: Feed) -> Iterator[tuple[int, Outcome]]:
        raise OSError("no more processes")


def test_an_error_of_the_evaluator_reaches_the_search(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a broken sandbox ends a thread without a word, and the run waits for outcomes for ever."""
    with pytest.raises(OSError, match="no more processes"):
        run_search(tmp_path / "run", Broken(evaluator), model=ScriptedModel(per_row=False))


def test_evaluators_are_told_apart_by_what_they_can(evaluator: Evaluator) -> None:
    """Else our own evaluator is taken for one that gets whole batches only, and nothing overlaps."""
    assert isinstance(evaluator, EvaluatesArriving)
    assert not isinstance(Batchwise(evaluator), EvaluatesArriving)
    with Ahead(Batchwise(evaluator)) as ahead:
        ahead.add(7, SEEDS[0])
        assert [candidate for candidate, _ in ahead.outcomes()] == [7]
