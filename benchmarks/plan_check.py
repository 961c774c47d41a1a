"""What `eoh-esopt plan --gpu cpu` predicts beside what a real run takes, part by part.

    python -m benchmarks.plan_check [--model SmolLM2-135M-Instruct] [--seeds 2 3] [--clock wall]

For each scope and seed a few layers are timed, and right after them a run: a start population, one generation of e1,
e2, m1 and m2, and their updates. The plan is told the mean lengths of the run's prompts and replies and how many
updates it made, which it does not predict; layers are timed at the lengths of a run of another seed, before all others.
`--clock cpu` counts the processor time of the main thread, on one thread: for machines that others use too.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from eoh_esopt.planning.shapes import from_folder

if TYPE_CHECKING:
    from eoh_esopt.engine.config import RunConfig
    from eoh_esopt.planning.machines import HereMachine
    from eoh_esopt.planning.workload import Seconds, Workload

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
PARTS = ("perturb", "write", "restore", "update")
SHAPES = {"full": {"directions": 6, "samples_per_direction": 1}, "norms": {"directions": 4, "samples_per_direction": 3}}


@dataclass(frozen=True)
class Run:
    """A finished run: seconds by part, and the mean tokens of its prompts and replies, and updates made."""

    seconds: Counter[str]
    prompt: float
    reply: float
    updates: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--scopes", nargs="*", default=list(SHAPES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[2, 3])
    parser.add_argument("--limit", type=int, default=80, help="tokens of a reply, at most")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    arguments = parser.parse_args()
    if arguments.clock == "cpu" and os.environ.get("OMP_NUM_THREADS") != "1":  # read when torch is loaded
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.plan_check", *sys.argv[1:]])
    print("| scope | seed | part | predicted | measured | predicted / measured |\n|---|---|---|---|---|---|")
    for scope in arguments.scopes:
        pilot = _run(_config(arguments, scope, 1), CLOCKS[arguments.clock])
        for seed in arguments.seeds:
            config = _config(arguments, scope, seed)
            machine = _timed(_workload(config, pilot), CLOCKS[arguments.clock])
            run = _run(config, CLOCKS[arguments.clock])
            _print_rows(scope, seed, _predicted(_workload(config, run), machine), run)


def _config(arguments: argparse.Namespace, scope: str, seed: int) -> RunConfig:
    from eoh_esopt.engine.config import RunConfig
    from eoh_esopt.models.protocol import Sampling

    config = RunConfig(
        "tsp_construct",
        arguments.model,
        seed=seed,
        scope=scope,
        population=4,
        budget=10**6,
        sampling=Sampling(max_new_tokens=arguments.limit),
        **SHAPES[scope],
    )
    return replace(config, budget=sum(count for _, count in config.plan))


def _workload(config: RunConfig, run: Run) -> Workload:
    from eoh_esopt.planning.workload import Workload

    return Workload(config, round(run.prompt), run.reply, 0.0, 1)


def _timed(workload: Workload, clock: Callable[[], float]) -> HereMachine:
    import torch

    from eoh_esopt.planning.machines import measure_here

    folder = _folder(workload)
    return measure_here("cpu", from_folder(folder), folder, workload, torch.bfloat16, ["exact"], clock=clock)


def _predicted(workload: Workload, machine: HereMachine) -> Seconds:
    """The plan's seconds of the whole run."""
    from eoh_esopt.planning.plan import make_plan

    return make_plan(machine, 1, from_folder(_folder(workload)), workload, 2, ["exact"]).ways[0].total


def _folder(workload: Workload) -> Path:
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress

    return resolve(workload.config.model, progress=Progress())


def _run(config: RunConfig, clock: Callable[[], float]) -> Run:
    """A real run, with the methods that do its parts timed."""
    from eoh_esopt.engine.events import read_events
    from eoh_esopt.engine.listener import Listener
    from eoh_esopt.engine.run import start
    from eoh_esopt.models.transformers_model import TransformersModel
    from eoh_esopt.models.weights import ScopedWeights

    seconds: Counter[str] = Counter()
    inside: list[str] = []

    def timed(part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def work(*args: Any, **kwargs: Any) -> Any:
            if part in ("perturb", "restore") and not inside:  # the self-test's
                return method(*args, **kwargs)
            inside.append(part)
            began = clock()
            try:
                return method(*args, **kwargs)
            finally:
                spent = clock() - began
                inside.pop()
                seconds[part] += spent
                if inside:
                    seconds[inside[-1]] -= spent

        return work

    places = [
        ("write", TransformersModel, "generate"),
        ("update", TransformersModel, "apply"),
        ("perturb", ScopedWeights, "perturb"),
        ("restore", ScopedWeights, "restore"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for part, owner, name in places:
            patch = mock.patch.object(owner, name, timed(part, getattr(owner, name)))
            patch.start()
        try:
            summary = start(config, Path(folder) / "run", workers=1, listener=Listener(), notify=lambda _: None)
        finally:
            mock.patch.stopall()
        events = read_events(Path(folder) / "run")
    replies = [one for event in events if event["event"] == "replies" for one in event["candidates"]]
    prompt, reply = (sum(one[key] for one in replies) / len(replies) for key in ("prompt_tokens", "new_tokens"))
    return Run(seconds, prompt, reply, summary["ledger"]["updates"])


def _print_rows(scope: str, seed: int, predicted: Seconds, run: Run) -> None:
    made = run.updates / 2  # a plan takes it that both batches that learn make one
    ours = {part: getattr(predicted, part) * (made if part == "update" else 1) for part in PARTS}
    theirs = {part: run.seconds[part] for part in PARTS}
    for part in (*PARTS, "in all"):
        plan, real = (sum(one.values()) if part == "in all" else one[part] for one in (ours, theirs))
        if real > 0:
            print(f"| {scope} | {seed} | {part} | {plan:.2f} s | {real:.2f} s | {plan / real:.2f} |", flush=True)


if __name__ == "__main__":
    main()
