"""The warm worker: a process that has the problem loaded and forks one child for each candidate.

Two processes make a worker. The guardian enters the namespaces, starts the zygote in them, and ends when the zygote
or the parent does. The zygote serves requests on standard input, one at a time, and answers on standard output: it
forks the child, waits for its answer or the deadline, and then kills whatever is left. No candidate code runs here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba  # noqa: F401 - so that no candidate has to wait for it

from eoh_esopt.sandbox import arrays, candidate, child, frames, isolation, syscalls
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from problems.base import Problem

_PARENT_CHECK_S = 0.25


@dataclass(frozen=True)
class Setup:
    """What the parent tells a worker on its command line.

    Attributes:
        problem: a `ProblemSpec` as JSON; empty for a worker that only tells what the host offers.
        limits: arguments of `Limits`.
        mode: one of `isolation.MODES`.
        scratch: an empty folder for this worker alone.
    """

    problem: str
    limits: Mapping[str, Any]
    mode: str
    scratch: str


def main(arguments: str) -> None:
    """Run a worker until its parent or its standard input is gone.

    Args:
        arguments: a `Setup` as JSON.
    """
    setup = Setup(**json.loads(arguments))
    parent = os.getppid()
    namespaces = isolation.enter_namespaces(setup.mode)
    zygote = os.fork()
    if zygote == 0:
        try:
            _zygote(setup, namespaces)
        finally:
            os._exit(0)
    _release_pipes()
    while os.waitpid(zygote, os.WNOHANG) == (0, 0):
        if os.getppid() != parent:
            os.kill(zygote, signal.SIGKILL)
            os.waitpid(zygote, 0)
            break
        time.sleep(_PARENT_CHECK_S)
    time.sleep(_PARENT_CHECK_S)  # an idle zygote ends by itself, a moment before its parent is seen to be gone
    if os.getppid() != parent:
        _remove_folders(Path(setup.scratch).parent)


def _remove_folders(worker: Path) -> None:
    """Clean up in the parent's place: this worker's folder, and the one around it once it is empty."""
    shutil.rmtree(worker, ignore_errors=True)
    with contextlib.suppress(OSError):
        worker.parent.rmdir()


def _release_pipes() -> None:
    """The guardian must not hold the zygote's ends of the pipes open."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)


def _zygote(setup: Setup, namespaces: isolation.Layer) -> None:
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_PDEATHSIG", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    requests, replies = os.dup(0), os.dup(1)
    frames.widen(replies)
    _release_pipes()
    try:
        problem = ProblemSpec.from_json(setup.problem).build() if setup.problem else None
        plan, layers = isolation.prepare(setup.mode, Limits(**setup.limits), namespaces, setup.scratch)
    except UserError as error:
        frames.write(replies, frames.pack({"error": str(error)}))
        return
    isolation.protect_worker()
    frames.write(replies, frames.pack({"layers": [[layer.name, layer.on, layer.why] for layer in layers]}))
    if problem is not None:
        _serve(requests, replies, problem, plan, namespaces.on)


def _serve(requests: int, replies: int, problem: Problem, plan: isolation.Plan, own_namespace: bool) -> None:
    cell = memoryview(mmap.mmap(-1, 8)).cast("q")
    gc.freeze()
    while (request := frames.read(requests)) is not None:
        header, code = request
        chosen = header.get("instances", range(len(problem.instances)))
        header, body = _evaluate(bytes(code).decode(), problem, chosen, plan, candidate.Progress(cell), own_namespace)
        frames.write(replies, frames.head(header, len(body)))
        frames.write(replies, body)


def _evaluate(
    code: str,
    problem: Problem,
    chosen: Sequence[int],
    plan: isolation.Plan,
    progress: candidate.Progress,
    own_namespace: bool,
) -> tuple[dict[str, object], arrays.Buffer]:
    """See one candidate through a process of its own. The body is what that process wrote, unread."""
    report, body = child.watch(
        lambda: candidate.answer(problem, code, progress, chosen),
        child.Walls(
            leave=lambda send: isolation.leave_descriptors(send, plan.ruleset),
            enclose=lambda worker: isolation.enclose(plan, worker),
        ),
        wall_s=plan.limits.wall_s,
        output_bytes=plan.limits.output_bytes,
        own_namespace=own_namespace,
    )
    _empty(plan.scratch)
    return {**report, "calls": progress.calls}, body


def _empty(scratch: str) -> None:
    """Make the scratch folder empty again."""
    with contextlib.suppress(OSError):
        if os.path.islink(scratch):
            os.unlink(scratch)
        os.chmod(scratch, 0o700)
        if not os.listdir(scratch):
            return
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch, mode=0o700, exist_ok=True)
