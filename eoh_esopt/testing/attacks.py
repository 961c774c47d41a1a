"""Run the hostile programs through a real evaluator and look at what each of them achieved."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eoh_esopt.sandbox.evaluator import Evaluator, describe
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from eoh_esopt.testing import traces
from eoh_esopt.testing.corpus import HostileProgram, programs
from operators.errors import UserError
from operators.records import Outcome, Status
from operators.task import Task

_LATE_S = 2.0
_DETAIL = 200
_SHORTEST_S = 3.0
_TIMES_HONEST = 3.0
_MEMORY = 1024**3


@dataclass(frozen=True)
class Finding:
    """What became of one hostile program.

    Attributes:
        program: which one.
        outcome: what the evaluator said; None when the program was skipped.
        broken: the promises that were broken, a sentence each; empty when the program was contained.
        skipped: why it was not run; empty when it was.
    """

    program: HostileProgram
    outcome: Outcome | None
    broken: tuple[str, ...] = ()
    skipped: str = ""


def attack(
    spec: ProblemSpec, *, isolation: str = "best", limits: Limits | None = None, only: Iterable[str] | None = None
) -> Iterator[Finding]:
    """Run hostile programs against a problem, each followed by the problem's first seed heuristic.

    A program that might do harm without a wall is skipped where that wall is not in force.

    Args:
        spec: the problem.
        isolation: as for `Evaluator`.
        limits: caps on each program; by default 1 GiB, and three times as long as the seed heuristic takes, but no
            less than 3 s.
        only: names of the programs to run; all by default.

    Raises:
        UserError: a name is unknown, the evaluator does not start, or the seed heuristic fails.
    """
    chosen = _choose(only)
    task = spec.build().task
    limits = _fair_limits(spec, task, isolation) if limits is None else limits
    layers = {layer.name for layer in describe(isolation) if layer.on}
    with Evaluator(spec, workers=1, limits=limits, isolation=isolation) as evaluator:
        honest = _honest(evaluator, task)
        for program in chosen:
            absent = [wall for wall in program.walls if wall not in layers]
            if absent:
                yield Finding(program, None, skipped=f"not in force: {', '.join(absent)}")
            else:
                yield examine(program, task, evaluator, honest, limits)


def examine(program: HostileProgram, task: Task, evaluator: Evaluator, honest: Outcome, limits: Limits) -> Finding:
    """Run one program, whatever walls it needs, and the honest heuristic after it.

    Args:
        program: the program.
        task: that of the evaluator's problem.
        evaluator: with one worker, idle.
        honest: the outcome of the task's first seed heuristic.
        limits: those of the evaluator.
    """
    traces.remove_markers()
    processes, files = traces.sandboxed(os.getpid()), traces.files()
    started = time.monotonic()
    outcome = evaluate(evaluator, program.source(task))
    seconds = time.monotonic() - started
    after = evaluate(evaluator, task.seeds[0].code)
    broken = judge(program, outcome, honest)
    if seconds > limits.wall_s + _LATE_S:
        broken.append(f"ended {seconds:.1f} s after its start, with a limit of {limits.wall_s:g} s")
    if after != honest:
        broken.append(f"the next candidate is affected: {after}, expected {honest}")
    remaining = traces.sandboxed(os.getpid())
    broken += [f"process {pid} was left behind" for pid in sorted(remaining - processes)]
    broken += [f"process {pid} of the sandbox ended" for pid in sorted(processes - remaining)]
    broken += [f"file {path} was left behind" for path in sorted(traces.files() - files)]
    traces.remove_markers()
    return Finding(program, outcome, tuple(broken))


def judge(program: HostileProgram, outcome: Outcome, honest: Outcome) -> list[str]:
    """What is wrong with the outcome of a program; empty when nothing is."""
    broken = []
    if outcome.status not in program.expected:
        expected = ", ".join(status.value for status in program.expected)
        broken.append(f"ended with {outcome.status.value} ({outcome.detail}), expected: {expected}")
    elif outcome.valid and outcome != honest and not program.any_score:
        broken.append(f"scored {outcome}, but decides like {honest}")
    lines = [outcome.detail, *outcome.trace.split("\n")]
    if not all(len(line) <= _DETAIL and line.isprintable() for line in lines):
        broken.append(f"its message is not fit for people: {lines!r:.1000}")
    return broken


def evaluate(evaluator: Evaluator, code: str) -> Outcome:
    """The outcome of one candidate; an error in the parent, which nothing should cause, becomes one of ours."""
    try:
        [(_, outcome)] = evaluator.evaluate([code])
    except Exception as error:  # noqa: BLE001 - the finding is that there is an error at all
        return Outcome(Status.INFRASTRUCTURE, detail=f"the evaluator raised {type(error).__name__}: {error}"[:_DETAIL])
    return outcome


def _choose(only: Iterable[str] | None) -> list[HostileProgram]:
    known = {program.name: program for program in programs()}
    names = list(known if only is None else only)
    for name in names:
        if name not in known:
            raise UserError(f"There is no hostile program {name!r}. Programs: {', '.join(known)}.")
    return [known[name] for name in names]


def _honest(evaluator: Evaluator, task: Task) -> Outcome:
    outcome = evaluate(evaluator, task.seeds[0].code)
    if not outcome.valid:
        why = f"{outcome.status.value}, {outcome.detail}"
        raise UserError(f"The first seed heuristic of {task.name} fails: {why}. Correct it, or raise the limits.")
    return outcome


def _fair_limits(spec: ProblemSpec, task: Task, isolation: str) -> Limits:
    """Limits that the seed heuristic stays well below."""
    with Evaluator(spec, workers=1, isolation=isolation) as evaluator:
        _honest(evaluator, task)
        started = time.monotonic()
        _honest(evaluator, task)
        seconds = time.monotonic() - started
    return Limits(wall_s=max(_SHORTEST_S, _TIMES_HONEST * seconds), memory_bytes=_MEMORY)
