"""The corpus of hostile programs, and whoever says that one of them was contained."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from eoh_esopt.sandbox.evaluator import Evaluator, describe
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from eoh_esopt.testing import attack, attacks, corpus, programs, traces
from operators.errors import UserError
from operators.records import Outcome, Status
from problems import registry
from problems.tsp_construct import TASK

LIMITS = Limits(wall_s=2.0, memory_bytes=512 * 1024**2)
HONEST = Outcome(Status.OK, 2.0, (2.0,), 6)
PROGRAM = "# Promise: none.\n# Expect: {}\n# Walls: none\ndef attack(honest, *arguments):\n    {}\n"

OWN_PROBLEM = '''
import numpy as np

from problems import InvalidSolution, Problem, WrongShape, as_matrix


class Pairs(Problem):
    """Say how good it is to take each pair."""

    template = """
import numpy as np

def desirability(costs):
    \\"\\"\\"How good it is to take each pair.

    costs: 2-D float array.
    Returns an array of the same shape.
    \\"\\"\\"
    return 1 / (1 + costs)
"""
    instances = [np.linspace(0, 1, 36).reshape(6, 6), np.ones((3, 3))]

    def solve(self, instance, function):
        return as_matrix(function(instance.copy()), instance.shape, "desirability")

    def score(self, instance, decisions):
        if decisions.shape != instance.shape or decisions.dtype.kind != "f":
            raise WrongShape("no matrix of the right shape")
        if not (decisions >= 0).all():
            raise InvalidSolution("a value is negative")
        return float((instance * decisions).sum())
'''


class Scripted:
    """In place of an evaluator: gives prepared outcomes in turn, and does something while it evaluates."""

    def __init__(self, *outcomes: Outcome | Exception, seconds: float = 0.0, leaves: str = "") -> None:
        self._outcomes, self._seconds, self._leaves = list(outcomes), seconds, leaves

    def evaluate(self, codes: list[str]) -> Iterator[tuple[int, Outcome]]:
        time.sleep(self._seconds)
        if self._leaves:
            subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(60)  # {self._leaves}"])
            self._leaves = ""
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        yield 0, outcome


def examine(evaluator: Scripted, expected: str = "ok") -> str:
    program = corpus.parse("made_up", PROGRAM.format(expected, "return honest(*arguments)"))
    limits = Limits(wall_s=0.01)
    return "\n".join(attacks.examine(program, TASK, cast(Evaluator, evaluator), HONEST, limits).broken)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> ProblemSpec:
    path = tmp_path_factory.mktemp("own") / "pairs.py"
    path.write_text(OWN_PROBLEM)
    return ProblemSpec.named(str(path))


def test_corpus_is_there() -> None:
    """A user would believe the sandbox tried when a part of the programs, or all, were left out of the package."""
    assert len(programs()) >= 150
    assert [program.name for program in programs()] == sorted(program.name for program in programs())


def test_programs_say_what_they_attack() -> None:
    """A user could not tell what a broken program means for a machine."""
    for program in programs():
        assert program.promise.endswith("."), program.name
        assert len(program.promise) >= 20, program.name
        assert program.expected, program.name
        assert not {Status.INFRASTRUCTURE, Status.NO_CODE} & set(program.expected), program.name
        assert set(program.walls) <= {"capabilities", "landlock", "seccomp"}, program.name
        assert len(program.text.splitlines()) <= 40, program.name


@pytest.mark.parametrize("name", registry.names())
def test_programs_fit_every_problem(name: str) -> None:
    """A program that does not even start would pass for contained."""
    task = registry.get(name).task
    for program in programs():
        source = program.source(task)
        assert source.endswith(program.tail)
        if Status.SYNTAX not in program.expected:
            compile(source, program.name, "exec")
            assert f"\ndef {task.function}({', '.join(task.arguments)}):\n" in source
            assert source.count(f"def {task.function}(") == 1
            assert "def _honest(" in source


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("# Promise: none.", "# A program", "Promise"),
        ("# Walls: none\n", "", "Walls"),
        ("Expect: ok", "Expect: fine", "fine"),
        ("# Walls: none", "# Walls: none\n# Score: some", "some"),
        ("# Walls: none", "# Walls: none\n# Tail: text", "cannot be read"),
    ],
)
def test_bad_header_is_named(old: str, new: str, complaint: str) -> None:
    """A program whose walls are forgotten would be run without them, and do harm."""
    text = PROGRAM.format("ok", "pass").replace(old, new)
    with pytest.raises(ValueError, match=rf"made_up.*{complaint}"):
        corpus.parse("made_up", text)


def test_contained_program_is_no_finding() -> None:
    """All programs would be reported, and nobody would read the report."""
    assert examine(Scripted(HONEST, HONEST)) == ""


def test_wrong_label_is_found() -> None:
    """A hole that shows only in the status would be passed over."""
    assert "ended with timeout (late), expected: ok" in examine(
        Scripted(Outcome(Status.TIMEOUT, detail="late"), HONEST)
    )
    assert "ended with ok (), expected: raised, killed" in examine(Scripted(HONEST, HONEST), "raised killed")


def test_better_score_is_found() -> None:
    """A program that scores itself would pass for one that is merely valid."""
    assert "but decides like" in examine(Scripted(Outcome(Status.OK, 0.0, (0.0,), 6), HONEST))


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(Status.RAISED, detail="\x1b[2J"),
        Outcome(Status.RAISED, detail="x" * 201),
        Outcome(Status.RAISED, trace="line 1\nline\r2"),
    ],
)
def test_message_that_steers_the_terminal_is_found(outcome: Outcome) -> None:
    """A candidate would write to the user's screen what it likes."""
    assert "not fit for people" in examine(Scripted(outcome, HONEST), "raised")


def test_harm_to_the_next_candidate_is_found() -> None:
    """A poisoned worker would go on evaluating honest heuristics."""
    assert "the next candidate is affected" in examine(Scripted(HONEST, Outcome(Status.KILLED)))


def test_lateness_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that puts its deadline off would pass."""
    monkeypatch.setattr(attacks, "_LATE_S", 0.0)
    assert "with a limit of 0.01 s" in examine(Scripted(HONEST, HONEST, seconds=0.1))


def test_error_in_the_parent_is_found() -> None:
    """An answer that raises in the parent would end the user's check with a traceback instead of a finding."""
    found = examine(Scripted(OverflowError("too large"), HONEST), "raised")
    assert "infrastructure (the evaluator raised OverflowError: too large)" in found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are seen on Linux only")
def test_process_left_behind_is_found() -> None:
    """A program that outlives its evaluation would pass."""
    before = traces.family(os.getpid())
    try:
        assert "was left behind" in examine(Scripted(HONEST, HONEST, leaves="eoh_esopt.sandbox.worker"))
    finally:
        for pid in traces.family(os.getpid()) - before:
            subprocess.run(["kill", "-9", str(pid)], check=True)


@pytest.mark.parametrize("make", ["touch", "mkdir"])
def test_file_left_behind_is_found_and_removed(make: str) -> None:
    """A program that writes outside its folder would pass, and its file would be blamed on the next one."""
    marker = Path(tempfile.gettempdir()) / traces.MARKER

    class Writing(Scripted):
        def evaluate(self, codes: list[str]) -> Iterator[tuple[int, Outcome]]:
            getattr(marker, make)(exist_ok=True)
            return super().evaluate(codes)

    assert f"file {marker} was left behind" in examine(Writing(HONEST, HONEST))
    assert not marker.exists()


def test_own_problem_can_be_attacked(own: ProblemSpec) -> None:
    """A user could run the programs against the built-in problems only."""
    names = [program.name for program in programs() if program.name.startswith(("returns_", "forges_decisions"))]
    names += ["mutates_arguments", "overwrites_instances", "patches_scorer", "patches_numpy", "forges_score"]
    found = list(attack(own, limits=LIMITS, only=names))
    assert [finding.program.name for finding in found] == names
    assert [finding.broken for finding in found if finding.broken] == []
    assert all(finding.outcome is not None and not finding.skipped for finding in found)


def test_tolerant_program_is_found_for_real(own: ProblemSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the honest heuristic would never have failed in a real sandbox."""
    better = corpus.parse("made_up", PROGRAM.format("ok", "return 0.5 * honest(*arguments)"))
    monkeypatch.setattr(attacks, "programs", lambda: (better,))
    [finding] = attack(own, limits=LIMITS)
    assert finding.outcome is not None
    assert finding.outcome.valid
    assert "but decides like" in finding.broken[0]


def test_program_without_its_wall_is_skipped(own: ProblemSpec) -> None:
    """Checking a problem where the kernel offers no walls would kill the user's own processes."""
    found = {finding.program.name: finding for finding in attack(own, isolation="none", limits=LIMITS, only=["exits"])}
    assert found["exits"].outcome is not None
    needy = [program.name for program in programs() if not program.portable]
    for finding in attack(own, isolation="none", limits=LIMITS, only=needy):
        assert finding.outcome is None
        assert finding.skipped.startswith("not in force: ")
    assert {layer.name for layer in describe()} >= {wall for program in programs() for wall in program.walls}


def test_limits_follow_from_the_heuristic(own: ProblemSpec) -> None:
    """Problems that take long could not be attacked, or quick ones would take an hour."""
    [finding] = attack(own, only=["sleeps"])
    assert finding.outcome is not None
    assert finding.outcome.detail == "no answer within 3 s"


def test_wrong_arguments_are_named(own: ProblemSpec) -> None:
    """A user with a typing error, or a template that fails, would get programs that are all contained."""
    with pytest.raises(UserError, match=r"'fork_bom'.*fork_bomb"):
        next(attack(own, only=["fork_bom"]))
    with pytest.raises(UserError, match="Pairs fails: timeout"):
        next(attack(own, only=["exits"], limits=Limits(wall_s=0.0001)))
