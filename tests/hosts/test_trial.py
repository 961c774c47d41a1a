"""What is reported of one evaluation by a user's own code."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from eoh_esopt.hosts.evaluation import HostEvaluation, SandboxEvaluation
from eoh_esopt.hosts.host import HostFacts
from eoh_esopt.hosts.trial import counting
from eoh_esopt.sandbox.candidate import Progress
from operators.records import Outcome, Status

GOOD = "def value(first, second):\n    return first + second\n"


class FakeHost:
    """A host whose evaluation is a function.

    Args:
        evaluate: takes the program's function.
    """

    def __init__(self, evaluate: Any) -> None:
        self._evaluate = evaluate

    def evaluate(self, code: str, progress: Progress) -> object:
        names: dict[str, Any] = {}
        exec(code, names)
        return counting(progress, lambda around: self._evaluate(around(names["value"])))

    def evaluate_as_host(self, code: str) -> object:
        return self.evaluate(code, Progress())


def facts(**changes: Any) -> HostFacts:
    return HostFacts(
        **{
            "name": "Fake",
            "problem": "Near",
            "function": "value",
            "arguments": ("first", "second"),
            "template": GOOD,
            "operators": ("e1", "m1"),
            "population": 4,
            "generations": 2,
            "drawn": {},
            "workers": 2,
            "timeout": 5.0,
            "folder": Path("."),
            **changes,
        }
    )


def outcomes(evaluate: Any, *codes: str, **changes: Any) -> list[Outcome]:
    with SandboxEvaluation(FakeHost(evaluate), facts(**changes)) as evaluation:  # type: ignore[arg-type]
        found = dict(evaluation.evaluate(codes))
    return [found[place] for place in range(len(codes))]


def call(function: Any) -> Any:
    return function(1.0, 2.0)


@pytest.mark.parametrize(
    ("code", "status", "calls"),
    [
        (GOOD, Status.OK, 1),
        ("def value(:\n", Status.SYNTAX, 0),
        ("def value(a, b):\n    return '\0'\n", Status.SYNTAX, 0),
        ("def other(first, second):\n    return 1.0\n", Status.WRONG_NAME, 0),
        ("def value(first):\n    return first\n", Status.WRONG_ARGUMENTS, 0),
        ("def value(first, second, *, third):\n    return first\n", Status.RAISED, 0),
        ("def value(*numbers):\n    return sum(numbers)\n", Status.OK, 1),
        ("def value(first, second, third=0):\n    return first\n", Status.OK, 1),
        ("value = lambda first, second: first\n", Status.OK, 1),
        ("def value(first, second):\n    raise KeyError(first)\n", Status.RAISED, 0),
        ("def value(first, second):\n    raise SystemExit\n", Status.RAISED, 0),
        ("import no_such_module\n" + GOOD, Status.RAISED, 0),
        ("def value(first, second):\n    return None\n", Status.INVALID_SOLUTION, 1),
        ("def value(first, second):\n    return True\n", Status.WRONG_SHAPE, 1),
        ("def value(first, second):\n    return {'score': 1}\n", Status.WRONG_SHAPE, 1),
        ("def value(first, second):\n    return [1.0, 2.0]\n", Status.WRONG_SHAPE, 1),
        ("def value(first, second):\n    return float('nan')\n", Status.NOT_FINITE, 1),
        ("def value(first, second):\n    return -float('inf')\n", Status.NOT_FINITE, 1),
        ("def value(first, second):\n    import os; os._exit(3)\n", Status.KILLED, 0),
    ],
)
def test_each_way_to_fail_has_its_status(code: str, status: Status, calls: int) -> None:
    """Without it a failure could count as a number, and small models would not learn to come a step further."""
    outcome = outcomes(call, code)[0]
    assert (outcome.status, outcome.calls) == (status, calls), outcome.detail
    assert (outcome.objective is not None) == (status is Status.OK)


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda function: function(first=1.0, second=2.0),
        lambda function: function(*(1.0,), **{"second": 2.0}),
        lambda function: numba.njit(function)(1.0, 2.0),
        lambda function: float(len(inspect.signature(function).parameters)) + 1.0,
    ],
)
def test_evaluations_may_do_with_the_function_what_they_like(evaluate: Any) -> None:
    """Without it evaluations that compile the function, or call it by names, would fail for our counting its calls."""
    assert outcomes(evaluate, GOOD)[0].objective == 3.0


def test_number_is_not_rounded() -> None:
    """Without it rewards of small differences would be lost, as where EoH rounds to five decimals."""
    assert outcomes(lambda function: 1.0 / 3.0 * 1e-9, GOOD)[0].objective == 1.0 / 3.0 * 1e-9


@pytest.mark.parametrize("value", [np.float64(2.5), np.array(2.5), np.float32(2.5)])
def test_numbers_of_numpy_are_numbers(value: Any) -> None:
    """Without it the usual `np.mean(...)` of an evaluation would count as no number."""
    assert outcomes(lambda function: value, GOOD)[0].objective == 2.5


def test_numbers_that_are_better_when_larger_are_turned_round() -> None:
    """Without it the search of a host that maximises would learn to get worse."""
    assert outcomes(call, GOOD, maximise=True)[0].objective == -3.0


def test_errors_name_their_place() -> None:
    """Without it a user is told that something failed, not what."""
    detail = outcomes(call, "def value(first, second):\n\n    return unknown\n")[0].detail
    assert detail == "NameError: name 'unknown' is not defined (line 3 of the program)"


def test_evaluations_that_draw_random_numbers_repeat() -> None:
    """Without it the same program would get another objective each time, and no run could be repeated."""

    def evaluate(function: Any) -> float:
        return float(np.random.rand())  # noqa: NPY002 - as users do

    first, second = outcomes(evaluate, GOOD, GOOD)
    assert first.objective == second.objective


def test_late_programs_are_told_so() -> None:
    """Without it a timeout would look like a mistake of the program."""
    outcome = outcomes(call, "def value(first, second):\n    while True: pass\n", timeout=0.5)[0]
    assert (outcome.status, outcome.detail) == (Status.TIMEOUT, "no answer within 0.5 s")


def test_hosts_own_evaluation_gives_the_same_outcomes() -> None:
    """Without it rewards would depend on the evaluator beyond what its documentation says."""
    with HostEvaluation(FakeHost(call), facts()) as evaluation:  # type: ignore[arg-type]
        found = dict(evaluation.evaluate([GOOD, GOOD.replace("first +", "2 *")]))
    assert [found[place].objective for place in range(2)] == [3.0, 4.0]
