"""Hostile programs against the walls, and processes killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eoh_esopt.sandbox.evaluator import Evaluator, describe
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status
from problems.tsp_construct import TASK

HOSTILE = sorted((Path(__file__).parents[1] / "hostile").glob("*.py"))
MARKER = Path("/tmp/eoh-esopt-hostile-marker")
SPEC = ProblemSpec("problems.tsp_construct:TspConstruct", {"n_instances": 2, "n_nodes": 8})
LIMITS = Limits(wall_s=1.0, memory_bytes=256 * 1024**2)
NEAREST = TASK.seeds[0].code
ENDLESS = "def select_next_node(a, b, c, d):\n    while True:\n        pass\n"

# What has to hold with resource limits and process groups alone, and is safe to try without walls.
PORTABLE = [
    "endless_loop",
    "ignores_signals",
    "huge_array",
    "exits",
    "segfaults",
    "leaves_orphan",
    "leaves_threads",
    "reads_secrets",
    "raises_limits" if os.geteuid() else "mutates_arguments",
    "patches_scorer",
    "forges_score",
    "forges_decisions",
    "floods_answer",
    "closes_descriptors",
]

linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")


def family(pid: int) -> set[int]:
    """Ids of the living processes that descend from a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found: set[int] = set()
    while grown := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= grown
    return found


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


@pytest.fixture(scope="module", autouse=True)
def _secret() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EOH_TEST_SECRET", "sesame")
        yield


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
def honest(walled: Evaluator) -> Outcome:
    return outcomes(walled, NEAREST)[0]


def check(evaluator: Evaluator, program: Path, honest: Outcome | None = None) -> None:
    """Run a hostile program and a plain one after it, and look for what it left behind."""
    code = program.read_text()
    expected = code.split("\n")[1].removeprefix("# Expect: ").split()
    before = family(os.getpid())
    started = time.monotonic()
    found, after = outcomes(evaluator, code, NEAREST)
    assert found.status.value in expected, found
    assert time.monotonic() - started < LIMITS.wall_s + 2.0
    assert len(found.detail) <= 200
    assert found.detail.isprintable()
    assert after.status is Status.OK
    assert honest is None or after == honest
    if found.valid:
        assert found == after, "the candidate is nearest neighbour and has to score as that"
    assert family(os.getpid()) == before, "processes came or went"
    assert not MARKER.exists(), "a file was written outside"
    for scratch in Path(tempfile.gettempdir()).glob("eoh-esopt-*/worker-*/scratch"):
        assert not list(scratch.iterdir()), "something was left in the working folder"


@linux
@pytest.mark.parametrize("program", HOSTILE, ids=lambda path: path.stem)
def test_hostile_program_is_contained(program: Path, walled: Evaluator, honest: Outcome) -> None:
    """Each program attacks one promise, named in its first line; all fail, and the next candidate never notices."""
    check(walled, program, honest)


@linux
@pytest.mark.parametrize("name", PORTABLE)
def test_limits_hold_without_walls(name: str, bare: Evaluator) -> None:
    """Where the kernel offers no walls, time, memory, leftovers and forged scores are still dealt with."""
    check(bare, Path(__file__).parents[1] / "hostile" / f"{name}.py")


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
    program = Path(__file__).parents[1] / "hostile" / "kills_worker.py"
    found, after = outcomes(bare, program.read_text(), NEAREST)
    assert found.status is Status.INFRASTRUCTURE
    assert "3 attempts" in found.detail
    assert after.status is Status.OK


@linux
@pytest.mark.parametrize("mode", ["best", "none"])
def test_nothing_survives_a_killed_parent(mode: str, tmp_path: Path) -> None:
    """`kill -9` of the search would leave candidates running on the user's machine."""
    script = textwrap.dedent(f"""
        from eoh_esopt.sandbox.evaluator import Evaluator
        from eoh_esopt.sandbox.limits import Limits
        from eoh_esopt.sandbox.spec import ProblemSpec
        spec = ProblemSpec({SPEC.target!r}, {dict(SPEC.arguments)!r})
        evaluator = Evaluator(spec, workers=2, limits=Limits(wall_s=300), isolation={mode!r})
        print("ready", flush=True)
        list(evaluator.evaluate([{ENDLESS!r}] * 2))
    """)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    assert wait_until(lambda: len(family(parent.pid)) == 6), "two guardians, two zygotes, two candidates"
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
