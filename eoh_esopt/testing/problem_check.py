"""What is wrong with a problem, found before any model is called: loads it, runs its template, forges decisions."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import dropwhile
from pathlib import Path
from typing import Any

import numpy as np

from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status
from problems import registry
from problems.base import BadReturn, Decisions, Problem, as_decisions
from problems.references import ceiling_of, references

_SLOW_S = 20.0
_MARGIN = 10.0
_SHORTEST_S = 2.0
_ACCEPTED = "accepted"


class Verdict(Enum):
    """How bad a finding is."""

    FINE = "ok"
    WARNING = "warning"
    ERROR = "ERROR"


@dataclass(frozen=True)
class CheckFinding:
    """One line of the report.

    Attributes:
        what: what was looked at.
        verdict: whether it is fine.
        found: what was found, and what to do about it; may have several lines.
    """

    what: str
    verdict: Verdict
    found: str


def check_problem(name: str, timeout: float, isolation: str = "best") -> Iterator[CheckFinding]:
    """Check a problem from its file to its score; ends at the first error that hides the rest.

    Args:
        name: name of a built-in problem, or the path of a file that defines one.
        timeout: seconds that a seed heuristic may take on all instances.
        isolation: of the sandbox.
    """
    began = time.perf_counter()
    try:
        problem = ProblemSpec.named(name).build()
        task = problem.task
    except UserError as error:
        yield CheckFinding("file", Verdict.ERROR, _with_cause(error))
        return
    yield CheckFinding("file", Verdict.FINE, f"{problem.name} loads in {time.perf_counter() - began:.2f} s")
    yield CheckFinding("template", Verdict.FINE, f"{task.signature} {len(task.seeds)} seed heuristics")
    yield CheckFinding("instances", Verdict.FINE, f"{len(problem.instances)}")
    yield from _sandboxed(name, problem, timeout, isolation)


def _sandboxed(name: str, problem: Problem, timeout: float, isolation: str) -> Iterator[CheckFinding]:
    limits = Limits(wall_s=timeout)
    codes = [seed.code for seed in problem.task.seeds]
    stage = "sandbox"
    try:
        with Evaluator(ProblemSpec.named(name), workers=1, limits=limits, isolation=isolation) as evaluator:
            yield CheckFinding(stage, Verdict.FINE, evaluator.isolation_level)
            stage = "score"
            list(evaluator.evaluate(codes[:1]))
            first, seconds = [], []
            for code in codes:
                began = time.perf_counter()
                first += [outcome for _, outcome in evaluator.evaluate([code])]
                seconds.append(time.perf_counter() - began)
            second = dict(evaluator.evaluate(codes))
    except UserError as error:
        yield CheckFinding(stage, Verdict.ERROR, _with_cause(error))
        return
    for seed, outcome in zip(problem.task.seeds, first, strict=True):
        yield _seed(problem, seed.idea, outcome)
    failed = [index for index, outcome in enumerate(first) if not outcome.valid]
    if failed:
        yield from _why(problem, codes[failed[0]], first[failed[0]])
        return
    yield _repeats(first, list(map(second.__getitem__, range(len(codes)))))
    yield from _forgeries(problem, codes[0], first[0])
    yield _time(max(seconds))
    yield _known(problem)


def _seed(problem: Problem, idea: str, outcome: Outcome) -> CheckFinding:
    if outcome.objective is not None:
        value = f"{problem.measure} {problem.natural(outcome.objective):.6g} after {outcome.calls} calls"
        return CheckFinding(f"seed heuristic: {idea}", Verdict.FINE, value)
    lines = [f"{outcome.status.value}: {outcome.detail}", *outcome.trace.split("\n")]
    return CheckFinding(f"seed heuristic: {idea}", Verdict.ERROR, "\n".join(filter(None, lines)))


def _why(problem: Problem, code: str, outcome: Outcome) -> Iterator[CheckFinding]:
    """The traceback through the problem's own `solve` or `score`. The seed heuristics are the user's own code."""
    if outcome.status not in (Status.RAISED, Status.INVALID_SOLUTION, Status.WRONG_SHAPE, Status.NOT_FINITE):
        return
    try:
        function = _function(problem, code)
        for instance in problem.instances:
            problem.objective(instance, as_decisions(problem.solve(instance, function), problem.name))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own solve and score
        yield CheckFinding("traceback", Verdict.ERROR, _trace(error))


def _function(problem: Problem, code: str) -> Callable[..., object]:
    names: dict[str, Any] = {}
    exec(compile(code, "template", "exec"), names)
    function: Callable[..., object] = names[problem.task.function]
    return function


def _repeats(first: list[Outcome], second: list[Outcome]) -> CheckFinding:
    same = all(one.per_instance == other.per_instance for one, other in zip(first, second, strict=True))
    if not same:
        found = "the same heuristic got two values. Seed every generator that solve and score use."
        return CheckFinding("reproducible", Verdict.ERROR, found)
    if len(first) > 1 and len({one.objective for one in first}) == 1:
        found = "all seed heuristics have the same objective: a search could not tell heuristics apart."
        return CheckFinding("reproducible", Verdict.WARNING, found)
    return CheckFinding("reproducible", Verdict.FINE, "twice the same values")


def _forgeries(problem: Problem, code: str, honest: Outcome) -> Iterator[CheckFinding]:
    """Whatever a hostile candidate may send in place of decisions has to be refused, or be worth no more."""
    instance = problem.instances[0]
    decisions = as_decisions(problem.solve(instance, _function(problem, code)), problem.name)
    wrong: list[str] = []
    strange: list[str] = []
    for what, forged in _forged(decisions).items():
        complaint = _complaint(problem, instance, forged, honest.per_instance[0])
        if complaint:
            legal = complaint.startswith(_ACCEPTED) and np.isfinite(forged).all() and forged.shape == decisions.shape
            (strange if legal else wrong).append(f"{what}: {complaint}")
    if strange and not wrong:
        doubt = "If these are no solutions, refuse them in score; if they are, the template is a weak start."
        yield CheckFinding("forged decisions", Verdict.WARNING, "\n".join([*strange, doubt]))
    elif wrong:
        remedy = "Check shape, type and every rule in score, and raise problems.InvalidSolution."
        yield CheckFinding("forged decisions", Verdict.ERROR, "\n".join([*wrong, *strange, remedy]))
    else:
        yield CheckFinding("forged decisions", Verdict.FINE, "refused, or worth no more than the template")


def _forged(decisions: Decisions) -> dict[str, Decisions]:
    floats = np.asarray(decisions, dtype=np.float64)
    return {
        "no decisions": decisions.reshape(-1)[:0],
        "one more dimension": decisions[None],
        "a single number": np.zeros((), decisions.dtype),
        "all NaN": np.full_like(floats, np.nan),
        "all infinite": np.full_like(floats, np.inf),
        "all minus infinite": np.full_like(floats, -np.inf),
        "all -1": np.full_like(decisions, -1),
        "all beyond 2**62": np.full_like(np.asarray(decisions, dtype=np.int64), 2**62),
    }


def _complaint(problem: Problem, instance: Any, forged: Decisions, honest: float) -> str:
    """What is wrong with how a forgery was received; empty when nothing is."""
    try:
        value = problem.objective(instance, forged)
    except BadReturn:
        return ""
    except UserError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the user's own score
        return f"score raised {type(error).__name__}: {error}"
    better = math.isfinite(value) and value < honest  # what is not finite is refused by whoever asked for the score
    return f"{_ACCEPTED}, and better than the template ({problem.natural(value):.6g})" if better else ""


def _time(seconds: float) -> CheckFinding:
    timeout = max(_SHORTEST_S, math.ceil(_MARGIN * seconds))
    found = f"{seconds:.3f} s for the slowest seed heuristic; a fair limit is --timeout {timeout:g}"
    return CheckFinding("time", Verdict.WARNING if seconds > _SLOW_S / _MARGIN else Verdict.FINE, found)


def _known(problem: Problem) -> CheckFinding:
    known = references(problem)
    values = ", ".join(f"{one.name} {one.mean:.6g}" for one in known if one.mean is not None)
    if ceiling_of(known) is None:
        return CheckFinding("references", Verdict.FINE, f"{values or 'none'}; no ceiling, so no gap will be shown")
    return CheckFinding("references", Verdict.FINE, values)


def _with_cause(error: UserError) -> str:
    """The error, and the traceback of what it was raised from."""
    cause = error.__cause__
    return str(error) if cause is None or isinstance(cause, UserError) else f"{error}\n{_trace(cause)}"


def _trace(error: BaseException) -> str:
    """The traceback, from the first frame that is the user's; a syntax error says its place by itself."""
    frames = [] if isinstance(error, SyntaxError) else list(traceback.extract_tb(error.__traceback__))
    ours = ("importlib", str(Path(registry.__file__)), str(Path(__file__).parents[1]))
    theirs = list(dropwhile(lambda frame: any(part in frame.filename for part in ours), frames))
    lines = traceback.format_list(theirs or frames) + traceback.format_exception_only(error)
    return "".join(lines).rstrip()
