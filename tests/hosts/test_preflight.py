"""What is said of a user's evaluation before the model is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_trial import GOOD, FakeHost, call, facts

from eoh_esopt.hosts.evaluation import SandboxEvaluation
from eoh_esopt.hosts.preflight import check_evaluation
from operators.errors import UserError

STUB = "def value(first, second):\n    raise NotImplementedError\n"


def said(evaluate: Any, **changes: Any) -> list[str]:
    lines: list[str] = []
    with SandboxEvaluation(FakeHost(evaluate), facts(**changes)) as evaluation:  # type: ignore[arg-type]
        check_evaluation(facts(**changes), evaluation, lines.append)
    return lines


def missing_data(function: Any) -> float:
    return float(Path("no_such_data.txt").read_text())


@pytest.mark.parametrize("template", [GOOD, STUB, ""])
def test_evaluation_that_fails_by_itself_is_an_error(template: str) -> None:
    """Without it every candidate fails for a reason that has nothing to do with it, and the model pays for it."""
    with pytest.raises(UserError, match=r"before it calls value: FileNotFoundError.*no_such_data.txt"):
        said(missing_data, template=template)


@pytest.mark.parametrize("template", [STUB, ""])
def test_evaluation_that_needs_a_real_program_is_none(template: str) -> None:
    """Without it problems whose template is only a stub could not be searched."""
    lines = said(lambda function: function(1.0, 2.0) + 1.0, template=template)
    assert ["NotImplementedError" in line for line in lines] == ([True] if template else [])


def test_objective_of_the_template_is_told() -> None:
    """Without it a user cannot tell whether the search found anything better."""
    assert said(call, template=GOOD) == ["The problem's own template has the objective 3."]
    assert said(call, template=GOOD, maximise=True) == ["The problem's own template has the objective 3."]


def test_timeout_that_is_too_short_for_the_template_is_told() -> None:
    """Without it a search in which everything is late looks like one whose model is bad."""

    def slow(function: Any) -> float:
        while True:
            pass

    lines = said(slow, template=GOOD, timeout=0.3)
    assert len(lines) == 1
    assert lines[0].startswith("WARNING")
    assert "0.3 s" in lines[0]


def test_classes_are_probed_too() -> None:
    """Without it the problems whose template is a class could not be searched."""
    template = "class value:\n    def run(self):\n        raise NotImplementedError\n"

    def evaluate(kind: Any) -> float:
        return float(kind().run())

    assert len(said(evaluate, template=template, arguments=None)) == 1
