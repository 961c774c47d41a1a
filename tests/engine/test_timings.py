"""Where the time of a run went: parts that do not overlap, summed over its sittings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedModel, of_kind, run_search, truncate_log

from eoh_esopt.engine.events import EVENTS, read_events
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.models.stopwatch import Stopwatch, stopwatch_of
from eoh_esopt.sandbox.evaluator import Evaluator

SECONDS = st.floats(0.0, 1e4)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A model that says how long its directions took."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch(perturb=7.0, restore=7.0)  # of the self-test, before the run


class Counting:
    """An evaluator that counts."""

    busy_seconds = 3.0


@given(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS)
def test_the_parts_make_the_whole(write: float, perturb: float, restore: float, update: float, wait: float) -> None:
    """Else the cost of learning is counted twice, or not at all."""
    clock, model = Clock(), Watched()
    time = Timekeeper(model, object(), Timings(), clock)
    with time.writing():
        model.stopwatch.perturb += perturb
        model.stopwatch.restore += restore
        clock.now += write + perturb + restore
    with time.updating():
        clock.now += update
    with time.waiting():
        clock.now += wait
    found = time.timings
    assert found.perturb == pytest.approx(perturb, abs=1e-6)
    assert found.restore == pytest.approx(restore, abs=1e-6)
    assert (found.generate, found.update, found.evaluate) == pytest.approx((write, update, wait), abs=1e-6)
    assert found.model == pytest.approx(write + perturb + restore + update, abs=1e-6)
    assert found.moves == pytest.approx(perturb + restore + update, abs=1e-6)
    assert found.sandbox is None


def test_what_cannot_be_told_apart_is_not_made_up() -> None:
    """Else a backend that does not split its time seems to perturb for nothing."""
    clock = Clock()
    time = Timekeeper(object(), object(), Timings(), clock)
    with time.writing():
        clock.now += 2
    assert time.timings == Timings(generate=2)
    assert stopwatch_of(object()) is None


def test_a_model_may_sum_up_its_parts_whenever_it_is_asked() -> None:
    """Else directions that several servers work on seem to cost nothing."""

    class Summing:
        seconds = 1.0

        @property
        def stopwatch(self) -> Stopwatch:
            return Stopwatch(perturb=self.seconds, restore=self.seconds)

    clock, model = Clock(), Summing()
    time = Timekeeper(model, object(), Timings(), clock)
    with time.writing():
        model.seconds += 2
        clock.now += 10
    assert time.timings == Timings(generate=6, perturb=2, restore=2)


def test_earlier_sittings_count() -> None:
    """Else the time of a run that was resumed is that of its last sitting."""
    clock, evaluator = Clock(), Counting()
    time = Timekeeper(Watched(), evaluator, Timings(1, 2, 3, 4, 5, 6), clock)
    evaluator.busy_seconds += 0.5
    with time.writing():
        clock.now += 1
    assert time.timings == Timings(2, 2, 3, 4, 5, 6.5)


def test_a_sitting_goes_on_where_the_last_batch_ended(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the log of a resumed run shows times that go back."""
    run_search(tmp_path / "whole", evaluator)
    lines = (tmp_path / "whole" / EVENTS).read_text().splitlines(keepends=True)
    half = next(i for i, line in enumerate(lines) if i > len(lines) // 2 and json.loads(line)["event"] == "batch")
    truncate_log(tmp_path / "whole", tmp_path / "run", half + 1)
    kept = of_kind(tmp_path / "run", "batch")[-1]["timings"]
    assert Recorded(read_events(tmp_path / "run")).timings.as_dict() == kept
    resumed = run_search(tmp_path / "run", evaluator).time.timings
    assert resumed.evaluate >= kept["evaluate"] > 0
    assert resumed.sandbox is not None
    assert resumed.sandbox >= kept["sandbox"] > 0


def test_a_log_without_times_is_gone_on_with(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the run of an earlier release cannot be resumed."""
    whole = run_search(tmp_path / "run", evaluator).ledger
    events = read_events(tmp_path / "run")
    for event in events:
        if event["event"] == "batch":
            del event["timings"]
            for name in ("parsed", "duplicates", "skip_reasons"):
                del event["ledger"][name]
    half = [json.dumps(event) + "\n" for event in events[: len(events) // 2]]
    (tmp_path / "run" / EVENTS).write_text("".join(half))
    assert run_search(tmp_path / "run", evaluator).ledger == whole


def test_each_part_of_a_search_is_timed(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else what the search does between the clocks is charged to nobody, or to the wrong part."""
    watch = Stopwatch()

    class Telling(ScriptedModel):
        stopwatch = watch

        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            watch.perturb += 10.0
            return super().generate(requests)

    timings = run_search(tmp_path / "run", evaluator, model=Telling()).time.timings
    batches = of_kind(tmp_path / "run", "batch")
    written = len(of_kind(tmp_path / "run", "replies"))
    assert timings.perturb == pytest.approx(10.0 * written)
    assert timings.restore == 0
    assert timings.update > 0
    assert timings.evaluate > 0
    assert [one["timings"]["perturb"] for one in batches] == sorted(one["timings"]["perturb"] for one in batches)


def test_a_stopwatch_times_both_ends_of_a_block() -> None:
    """Else writing counts as perturbing, or weights stay perturbed after a failure."""
    steps: list[str] = []

    @contextmanager
    def moved() -> Iterator[None]:
        steps.append("perturb")
        try:
            yield
        finally:
            steps.append("restore")

    watch = Stopwatch(wait=lambda: steps.append("wait"))

    def write() -> None:
        with watch.around(moved()):
            steps.append("write")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert steps == ["perturb", "wait", "write", "restore", "wait"]
    assert watch.perturb > 0
    assert watch.restore > 0


def test_timings_of_other_releases_are_read() -> None:
    """Else a report on a folder of a newer release ends in a traceback."""
    assert Timings.of({"generate": 1.5, "unheard_of": 2}) == Timings(generate=1.5)
    assert Timings.of(Timings(1.0, None, 2.0).as_dict()) == Timings(1.0, None, 2.0)
