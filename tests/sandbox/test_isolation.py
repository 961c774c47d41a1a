"""Hostile programs against the walls, and processes killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eoh_esopt.sandbox.evaluator import Evaluator, describe
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from eoh_esopt.testing import programs
from eoh_esopt.testing.attacks import examine
from eoh_esopt.testing.traces import family
from operators.errors import UserError
from operators.records import Outcome, Status
from problems.tsp_construct import TASK

SPEC = ProblemSpec("problems.tsp_construct:TspConstruct", {"size": 8, "n_instances": 2})
LIMITS = Limits(wall_s=1.0, memory_bytes=256 * 1024**2)
NEAREST = TASK.seeds[0].code
ENDLESS = "def select_next_node(a, b, c, d):\n    while True:\n        pass\n"
PROGRAMS = {program.name: program for program in programs()}
PORTABLE = [name for name, program in PROGRAMS.items() if program.portable]

linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def outcomes(evaluator: Evaluator, *codes: str) -> list[Outcome]:
    found = dict(evaluator.evaluate(codes))
    return [found[index] for index in range(len(codes))]


@pytest.fixture(scope="module")
def walled() -> Iterator[Evaluator]:
    try:
        evaluator = Evaluator(SPEC, workers=1, limits=LIMITS, isolation="required")
    except UserError as error:
        pytest.skip(str(error))
    with evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def bare() -> Iterator[Evaluator]:
    with Evaluator(SPEC, workers=1, limits=LIMITS, isolation="none") as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def honest(bare: Evaluator) -> Outcome:
    return outcomes(bare, NEAREST)[0]


@linux
@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_program_is_contained(name: str, walled: Evaluator, honest: Outcome) -> None:
    """Each program attacks one promise, named in its first line; all fail, and the next candidate never notices."""
    assert honest.valid
    finding = examine(PROGRAMS[name], TASK, walled, honest, LIMITS)
    assert not finding.broken, finding.program.promise


@linux
@pytest.mark.parametrize("name", PORTABLE)
def test_limits_hold_without_walls(name: str, bare: Evaluator, honest: Outcome) -> None:
    """Where the kernel offers no walls, time, memory, leftovers and forged scores are still dealt with."""
    finding = examine(PROGRAMS[name], TASK, bare, honest, LIMITS)
    assert not finding.broken, finding.program.promise


@linux
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("returns_")])
def test_unusable_value_is_named(name: str, bare: Evaluator) -> None:
    """A user who reads what a heuristic returned would find an error from inside the driver instead."""
    [found] = outcomes(bare, PROGRAMS[name].source(TASK))
    assert found.status in (Status.WRONG_SHAPE, Status.NOT_FINITE, Status.INVALID_SOLUTION), found
    assert found.detail.startswith("select_next_node returned ")


@linux
def test_forged_count_of_calls_is_cut(bare: Evaluator, honest: Outcome) -> None:
    """A candidate could claim more progress than there is to make."""
    [found] = outcomes(bare, PROGRAMS["forges_calls"].source(TASK))
    assert found.calls == honest.calls == 12


@linux
def test_every_layer_is_named() -> None:
    """A user who asks what the host offers would miss a layer, or its reason."""
    layers = {layer.name: layer for layer in describe()}
    assert list(layers) == ["process limits", "capabilities", "namespaces", "landlock", "seccomp"]
    assert all(layer.why for layer in layers.values())
    assert [layer.name for layer in describe("none") if layer.on] == ["process limits"]


@linux
def test_level_tells_what_is_off(bare: Evaluator) -> None:
    """A run without walls would look like one with them."""
    assert "without" in bare.isolation_level
    assert "seccomp (switched off)" in bare.isolation_level


@linux
@pytest.mark.parametrize("mode", ["best", "none"])
@pytest.mark.parametrize("choose", [min, max], ids=["guardian", "zygote"])
def test_candidate_is_retried_when_its_worker_is_killed(mode: str, choose: Callable[[set[int]], int]) -> None:
    """A candidate would be lost, or blamed, when the machinery around it dies."""
    before = family(os.getpid())
    slow = "import time\ntime.sleep(0.5)\n" + NEAREST
    with Evaluator(SPEC, workers=1, limits=Limits(wall_s=5), isolation=mode) as evaluator:
        workers = family(os.getpid()) - before
        iterator = evaluator.evaluate([slow])
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {choose(workers)}"])
        [(index, outcome)] = list(iterator)
        killer.wait()
        assert (index, outcome.status) == (0, Status.OK)
        assert not (family(os.getpid()) - before) & workers
    assert family(os.getpid()) == before


@linux
def test_worker_that_always_dies_is_nobodys_fault(bare: Evaluator) -> None:
    """A candidate that cannot be run would be retried for ever, or get a reward."""
    found, after = outcomes(bare, PROGRAMS["kills_worker"].source(TASK), NEAREST)
    assert found.status is Status.INFRASTRUCTURE
    assert "3 attempts" in found.detail
    assert after.status is Status.OK


@linux
@pytest.mark.parametrize("mode", ["best", "none"])
@pytest.mark.parametrize("candidates", [2, 0], ids=["busy", "idle"])
def test_nothing_survives_a_killed_parent(candidates: int, mode: str, tmp_path: Path) -> None:
    """`kill -9` of the search would leave candidates running on the user's machine."""
    script = textwrap.dedent(f"""
        import time
        from eoh_esopt.sandbox.evaluator import Evaluator
        from eoh_esopt.sandbox.limits import Limits
        from eoh_esopt.sandbox.spec import ProblemSpec
        spec = ProblemSpec({SPEC.target!r}, {dict(SPEC.arguments)!r})
        evaluator = Evaluator(spec, workers=2, limits=Limits(wall_s=300), isolation={mode!r})
        print("ready", flush=True)
        list(evaluator.evaluate([{ENDLESS!r}] * {candidates}))
        time.sleep(300)
    """)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    assert wait_until(lambda: len(family(parent.pid)) == 4 + candidates), "guardians, zygotes, candidates"
    processes = family(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not any(alive(pid) for pid in processes))
    assert wait_until(lambda: not list(tmp_path.iterdir())), "the scratch folders are still there"


@linux
def test_close_ends_a_running_candidate() -> None:
    """Stopping a search would leave its last candidates running."""
    before = family(os.getpid())
    evaluator = Evaluator(SPEC, workers=1, limits=Limits(wall_s=300))
    iterator = evaluator.evaluate(["def broken(:", ENDLESS, "\ud800"])
    next(iterator)
    iterator.close()
    evaluator.close()
    assert wait_until(lambda: family(os.getpid()) == before)


@linux
def test_works_where_namespaces_are_refused() -> None:
    """Default containers refuse namespaces: the other walls would have to stand alone, and orphans to be found."""
    script = textwrap.dedent(f"""
        import os, sys
        from eoh_esopt.sandbox import syscalls
        try:
            user = os.geteuid()
            syscalls.unshare(syscalls.CLONE_NEWUSER)
            open("/proc/self/uid_map", "w").write(f"{{user}} {{user}} 1")
            open("/proc/sys/user/max_user_namespaces", "w").write("0")
        except OSError as error:
            sys.exit(print("skip", error))
        from eoh_esopt.sandbox.evaluator import Evaluator
        from eoh_esopt.sandbox.spec import ProblemSpec
        spec = ProblemSpec({SPEC.target!r}, {dict(SPEC.arguments)!r})
        with Evaluator(spec, workers=1, isolation="required") as evaluator:
            print(evaluator.isolation_level)
            print([outcome.status.value for _, outcome in evaluator.evaluate([{NEAREST!r}])])
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    if done.stdout.startswith("skip"):
        pytest.skip(done.stdout)
    assert "namespaces (" in done.stdout, done.stderr
    assert "landlock" in done.stdout.split("without")[0]
    assert "['ok']" in done.stdout
