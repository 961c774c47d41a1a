"""How many candidates a second each problem evaluates, beside a plain implementation of the published evaluator.

    python -m benchmarks.evaluators [PROBLEM ...] [--seconds 10]

Both sides run the same heuristic, the problem's first seed heuristic, on the training set, in this process and on one
core. The last column is what the sandbox adds.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.spec import ProblemSpec
from problems import registry
from problems.base import Problem

_SANDBOXED = 30
_PLAIN = {
    "tsp_construct": "tsp",
    "kp_construct": "kp",
    "asp_construct": "asp",
    "aco_tsp": "aco_tsp",
    "aco_cvrp": "aco_cvrp",
    "aco_bpp": "aco_bpp",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="*", default=list(_PLAIN), help="which problems; all by default")
    parser.add_argument("--seconds", type=float, default=10.0, help="time spent on each side")
    arguments = parser.parse_args()
    print("| problem | plain, ms | ours, ms | ratio | candidate's share | ratio of the rest | sandboxed, ms | added |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.problem:
        print(_row(name, arguments.seconds), flush=True)


def _row(name: str, seconds: float) -> str:
    problem = registry.get(name)
    code = problem.task.seeds[0].code
    function = _function(problem, code)
    plain = importlib.import_module(f"benchmarks.plain.{_PLAIN[name]}").evaluate
    ours = _time(lambda: _evaluate(problem, function), seconds)
    theirs = _time(lambda: plain(problem, function), seconds)
    sandboxed = _in_sandbox(name, code)
    own = _own_time(problem, function)
    return (
        f"| {name} | {1e3 * theirs:.1f} | {1e3 * ours:.1f} | {theirs / ours:.1f}x | {own / ours:.0%} "
        f"| {(theirs - own) / (ours - own):.1f}x | {1e3 * sandboxed:.1f} | {1e3 * (sandboxed - ours):.1f} |"
    )


def _function(problem: Problem, code: str) -> Callable[..., object]:
    names: dict[str, Any] = {}
    exec(code, names)
    function: Callable[..., object] = names[problem.task.function]
    return function


def _evaluate(problem: Problem, function: Callable[..., object]) -> float:
    values = [problem.score(one, np.asarray(problem.solve(one, function))) for one in problem.instances]
    return float(np.mean(values))


def _time(work: Callable[[], object], seconds: float) -> float:
    """Median seconds of a repetition, the first (compilation, caches) left out."""
    work()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _own_time(problem: Problem, function: Callable[..., object]) -> float:
    """Seconds spent in the candidate's function during one evaluation, the clock's own cost taken off."""
    spent = calls = 0

    def clocked(*arguments: object) -> object:
        nonlocal spent, calls
        began = time.perf_counter_ns()
        value = function(*arguments)
        spent += time.perf_counter_ns() - began
        calls += 1
        return value

    for one in problem.instances:
        problem.solve(one, clocked)
    idle = 0
    for _ in range(calls):
        began = time.perf_counter_ns()
        idle += time.perf_counter_ns() - began
    return max(0, spent - idle) / 1e9


def _in_sandbox(name: str, code: str) -> float:
    """Median seconds of a candidate in a sandbox of one worker, the score included."""
    times = []
    with Evaluator(ProblemSpec.named(name), workers=1) as evaluator:
        for _ in range(_SANDBOXED):
            began = time.perf_counter()
            list(evaluator.evaluate([code]))
            times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
