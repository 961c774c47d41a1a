"""Candidates that reach the evaluator while others run get the outcomes they would get together."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.sandbox.evaluator import MAX_SOURCE_BYTES, Evaluator
from eoh_esopt.sandbox.feed import Feed
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.records import Outcome, Status

SPEC = ProblemSpec("problems.tsp_construct:TspConstruct", {"n_instances": 2, "size": 8})
HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
NEAREST = HEAD + "    return unvisited_nodes[0]\n"
ENDLESS = HEAD + "    while True:\n        pass\n"
CODES = (
    NEAREST,
    NEAREST.replace("[0]", "[-1]"),
    NEAREST + "#" * MAX_SOURCE_BYTES,
    "def select_next_node(:\n",
    HEAD + "    return 99\n",
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(SPEC, workers=2, limits=Limits(wall_s=30)) as evaluator:
        yield evaluator


@pytest.fixture
def feed() -> Iterator[Feed]:
    feed = Feed()
    yield feed
    feed.release()


@settings(max_examples=10, deadline=None)
@given(chosen=st.lists(st.sampled_from(CODES), max_size=6), taken_between=st.integers(0, 6))
def test_the_outcomes_are_those_of_the_whole_batch(evaluator: Evaluator, chosen: list[str], taken_between: int) -> None:
    """Else what a candidate is worth depends on whether the model was still writing when it ran."""
    feed = Feed()
    for code in chosen[:taken_between]:
        feed.put(code)
    arriving = evaluator.evaluate_arriving(feed)
    found: dict[int, Outcome] = {}
    if chosen[:taken_between]:
        found.update([next(arriving)])
    for code in chosen[taken_between:]:
        feed.put(code)
    feed.close()
    found.update(arriving)
    feed.release()
    assert found == dict(evaluator.evaluate(chosen))


def test_a_candidate_does_not_wait_for_those_before_it(evaluator: Evaluator, feed: Feed) -> None:
    """Else one endless candidate holds up all that are written after it, though workers are idle."""
    feed.put(ENDLESS)
    feed.put(NEAREST)
    arriving = evaluator.evaluate_arriving(feed)
    assert next(arriving)[0] == 1
    feed.put(NEAREST)
    assert next(arriving)[0] == 2, "it came when the first was already running"
    feed.drop()
    assert list(arriving) == []


def test_a_dropped_feed_ends_what_runs_and_what_waits(evaluator: Evaluator, feed: Feed) -> None:
    """Else a run that is interrupted waits for the time limits of candidates that nobody asks for any more."""
    for _ in range(3):
        feed.put(ENDLESS)
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.extend(dict(evaluator.evaluate_arriving(feed))))
    thread.start()
    feed.drop()
    thread.join(20)
    assert not thread.is_alive()
    assert ended == []
    assert [outcome.status for _, outcome in evaluator.evaluate([NEAREST])] == [Status.OK], "and it works again"


def test_a_feed_that_is_closed_at_once_ends(evaluator: Evaluator, feed: Feed) -> None:
    """Else a batch in which no reply had a program never ends."""
    feed.close()
    assert list(evaluator.evaluate_arriving(feed)) == []
