"""A user's own problem in the sandbox: what its score raises or returns, how long it takes, and what a forger sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from user_problems import BIN_PACKING, FULLEST, changed, put

from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status
from problems import registry

ECHO = '''
import time

import numpy as np

from problems import Problem, as_real


class Echo(Problem):
    """Say a number."""

    instances = (0, 1, 2)
    maximise = True
    template = "def say(x):\\n    'The number.'\\n    return x\\n"

    def solve(self, instance, say):
        return [as_real(say(instance), "say")]

    def score(self, instance, decisions):
        value = decisions[0]
        if value == 13:
            return (value, 0)
        if value == 14:
            return float(np.ones(2**58)[0])
        if value == 15:
            return float("nan")
        time.sleep(0.04 if instance == 1 else 0)
        return value
'''
FORGING = """
import json, os, struct

def say(x):
    header = json.dumps({"status": "ok"}).encode()
    body = struct.pack("<BBQ", 1, 1, 0) * 3
    os.write(3, struct.pack("!IQ", len(header), len(body)) + header + body)
    os._exit(0)
"""


def says(value: object) -> str:
    return f"def say(x):\n    return {value}\n"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ProblemSpec:
    return ProblemSpec.named(put(tmp_path_factory.mktemp("echo"), ECHO))


@pytest.fixture(scope="module")
def echo(spec: ProblemSpec) -> Iterator[Evaluator]:
    with Evaluator(spec, workers=1, limits=Limits(wall_s=10)) as evaluator:
        yield evaluator


def run(evaluator: Evaluator, *codes: str) -> list[Outcome]:
    found = dict(evaluator.evaluate(codes))
    return [found[index] for index in range(len(codes))]


def test_a_problem_of_the_users_own(tmp_path: Path) -> None:
    """The example of the documentation would not run."""
    path = put(tmp_path)
    problem = registry.get(path)
    with Evaluator(ProblemSpec.named(path), workers=2) as evaluator:
        seed, fullest = run(evaluator, problem.task.seeds[0].code, FULLEST)
        first, wrong = run(evaluator, "def score_bins(item, room):\n    return [1]\n", "def f(): pass")
    assert seed == fullest
    assert (seed.status, seed.calls, len(seed.per_instance)) == (Status.OK, 600, 5)
    for bins, items in zip(seed.per_instance, problem.instances, strict=True):
        assert bins == int(bins) >= items.sum() / 150
    assert (first.status, first.calls) == (Status.WRONG_SHAPE, 1)
    assert "score_bins returned an array of shape (1,), expected (120,)" in first.detail
    assert wrong.status is Status.WRONG_NAME


def test_objects_that_raise_are_told_with_their_line(tmp_path: Path) -> None:
    """A heuristic whose own object fails inside the driver would be blamed on the problem."""
    evil = "class Evil:\n    def __array__(self, *a, **k):\n        raise LookupError('evil')\n\n"
    with Evaluator(ProblemSpec.named(put(tmp_path)), workers=1) as evaluator:
        [outcome] = run(evaluator, evil + "def score_bins(item, room):\n    return Evil()\n")
    assert (outcome.status, outcome.detail) == (Status.RAISED, "LookupError: evil (line 3)")


def test_what_is_to_maximise_is_negated(echo: Evaluator) -> None:
    """The search would keep the worst heuristics."""
    [outcome] = run(echo, says("10 * x"))
    assert (outcome.objective, outcome.per_instance) == (-10.0, (0.0, -10.0, -20.0))
    assert [one.objective for _, one in sorted(echo.evaluate_each(says("10 * x")))] == [0.0, -10.0, -20.0]


def test_a_score_that_is_no_number_costs_the_candidate(echo: Evaluator) -> None:
    """A candidate that forges what a careless score cannot take would end the search of all the others."""
    message = "instance 0: score of Echo returned a value of type tuple, expected one number"
    first, second, third = run(echo, says(1), says(13), says(2))
    assert (second.status, second.detail[: len(message)]) == (Status.INVALID_SOLUTION, message)
    assert (first.objective, third.objective) == (-1.0, -2.0)


def test_a_score_without_memory_blames_no_candidate(echo: Evaluator) -> None:
    """A candidate would be paid for a machine that is too small, or the search would end with a traceback."""
    large, small = run(echo, says(14), says(1))
    assert large.status is Status.INFRASTRUCTURE
    assert "score of Echo ran out of memory" in large.detail
    assert small.objective == -1.0


def test_a_value_that_is_not_finite_is_the_candidates(echo: Evaluator) -> None:
    """A heuristic would be the best of all with a NaN."""
    [outcome] = run(echo, says("15 if x == 2 else x"))
    assert (outcome.status, outcome.objective) == (Status.NOT_FINITE, None)
    assert outcome.detail.startswith("instance 2: ")
    found = dict(echo.evaluate_each(says("15 if x == 2 else x")))
    assert [found[index].status for index in range(3)] == [Status.OK, Status.OK, Status.NOT_FINITE]


def test_a_score_that_fails_on_a_forgery_is_no_crash(echo: Evaluator) -> None:
    """A hostile candidate could end the search of everybody whose score does not check what it gets."""
    forged, honest = run(echo, FORGING, says(1))
    assert forged.status is Status.INVALID_SOLUTION, forged
    assert forged.detail.startswith("instance 0: score of Echo raised IndexError: index 0 is out of bounds")
    assert honest.objective == -1.0


def test_slow_scores_change_nothing(echo: Evaluator, spec: ProblemSpec) -> None:
    """A run with more workers would find other heuristics, or lose some whose score comes late."""
    codes = [says(value) for value in ("x", "2 * x", "15", "1 / x", "[1]", "-x", "None", "x * x", "7")] + [FORGING]
    with Evaluator(spec, workers=3, limits=Limits(wall_s=10)) as three:
        found = run(three, *codes)
        assert found == run(echo, *codes)
        assert len({index for index, _ in three.evaluate(codes)}) == len(codes)
    statuses = [outcome.status.value for outcome in found]
    assert statuses[:6] == ["ok", "ok", "not_finite", "raised", "wrong_shape", "ok"]


def test_leaving_with_scores_under_way(echo: Evaluator) -> None:
    """Scores of an iteration that was left would be handed out by the next."""
    iterator = echo.evaluate([says(number) for number in range(1, 7)])
    next(iterator)
    iterator.close()
    found = sorted((index, outcome.objective) for index, outcome in echo.evaluate([says(20), says(21)]))
    assert found == [(0, -20.0), (1, -21.0)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (changed(("return -room", "return -")), "Syntax error in the template of OnlineBinPacking.*line 9"),
        (changed(("def score_bins(item, room):", "def score_bins(item, room=1):")), "default or a star"),
        (BIN_PACKING.replace("list(np", "list(no"), "NameError.*line 25"),
    ],
)
def test_mistakes_show_before_any_candidate_runs(tmp_path: Path, source: str, message: str) -> None:
    """A mistake in the user's file would be told as a failure of each heuristic."""
    with pytest.raises(UserError, match=message):
        Evaluator(ProblemSpec.named(put(tmp_path, source)), workers=1)
