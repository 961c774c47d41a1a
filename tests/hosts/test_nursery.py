"""Evaluations by a user's own code, ended on time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from host_runs import SLEEPER, processes

from eoh_esopt.hosts.nursery import Nursery
from eoh_esopt.sandbox import arrays, frames
from eoh_esopt.sandbox.candidate import Progress
from operators.errors import UserError


def values(evaluate: Callable[[str], Any]) -> Callable[[str, Progress], list[arrays.Buffer]]:
    """A report that holds what `evaluate` makes of a program."""
    return lambda code, progress: [frames.pack({"value": evaluate(code)})]


@contextmanager
def nursery(evaluate: Callable[[str], Any], workers: int = 1, wall_s: float = 20.0) -> Iterator[Nursery]:
    with Nursery(values(evaluate), workers=workers, wall_s=wall_s) as one:
        yield one


def results(one: Nursery, *codes: str) -> list[Any]:
    """For each program what its child answered, or how it ended."""
    found: dict[int, Any] = {}
    for place, ended, body in one.evaluate(codes):
        found[place] = frames.untrusted(body)[0]["value"] if ended["end"] == "answer" else ended["end"]
    return [found[place] for place in range(len(codes))]


def test_evaluates_what_cannot_be_pickled_as_it_stands() -> None:
    """Without it problems with open files, lambdas or a class in the script itself could not be evaluated."""
    state = {"factor": 2, "unpicklable": lambda number: number}
    with nursery(lambda code: state["unpicklable"](int(code)) * state["factor"], workers=2) as one:  # type: ignore[operator]
        assert results(one, *map(str, range(10))) == [2 * number for number in range(10)]
        assert results(one) == []
        assert results(one, "7") == [14]


def test_an_evaluation_changes_nothing_for_the_next_one() -> None:
    """Without it a program could change the problem for all that come after it."""
    seen: list[str] = []

    def evaluate(code: str) -> int:
        seen.append(code)
        return len(seen)

    with nursery(evaluate) as one:
        assert results(one, "a", "b", "c") == [1, 1, 1]
    assert not seen


def test_evaluations_run_side_by_side() -> None:
    """Without it n_processes would be ignored: the second would wait for the first, and both run out of time."""
    receive, send = os.pipe()

    def evaluate(code: str) -> int:
        if code == "first":
            return os.read(receive, 1)[0]  # waits for the second
        return os.write(send, b"x")

    with nursery(evaluate, workers=2) as one:
        assert results(one, "first", "second") == [ord("x"), 1]
    os.close(receive)
    os.close(send)


def _deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _leave_process() -> None:
    """A grandchild in a session of its own, whose parent is gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp(SLEEPER[0], SLEEPER)
        os._exit(0)


@pytest.mark.parametrize("also", [lambda: None, _deaf, _leave_process], ids=["plain", "deaf", "leaving"])
def test_late_evaluations_are_ended_with_all_they_started(also: Callable[[], None]) -> None:
    """Without it one program stops the search, or fills the machine with processes."""

    def evaluate(code: str) -> int:
        if code == "late":
            also()
            time.sleep(600)
        return 1

    with nursery(evaluate, wall_s=1.0) as one:
        began = time.monotonic()
        assert results(one, "late", "quick") == ["timeout", 1]
        assert time.monotonic() - began < 60
        assert not processes(*SLEEPER)


def test_answered_evaluations_leave_no_process_either() -> None:
    """Without it programs that start something and return at once would pile processes up."""

    def evaluate(code: str) -> int:
        _leave_process()
        return 1

    with nursery(evaluate) as one:
        assert results(one, "a", "b") == [1, 1]
        assert not processes(*SLEEPER)


def test_closing_ends_what_runs() -> None:
    """Without it an interrupted search leaves its evaluations behind."""

    def evaluate(code: str) -> int:
        if code == "slow":
            subprocess.run(SLEEPER, check=False)
        return 1

    with nursery(evaluate, workers=2, wall_s=500) as one:
        for _ in one.evaluate(["quick", "slow"]):
            break
        _wait_until(lambda: bool(processes(*SLEEPER)))
    assert not processes(*SLEEPER)


def test_timeout_shorter_than_anything_hurts_nobody() -> None:
    """Without it (as in EoH 0.2) such a timeout kills the search itself."""
    with nursery(lambda code: time.sleep(600), wall_s=0.001) as one:
        assert results(one, *"abc") == ["timeout"] * 3


def test_program_that_kills_its_keeper_loses_only_itself() -> None:
    """Without it a program that kills its parent would end all evaluations, or be scored as if it had failed."""

    def evaluate(code: str) -> int:
        if code == "killer":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
        return 1

    with nursery(evaluate, workers=2) as one:
        assert results(one, "a", "killer", "b", "c") == [1, "broken", 1, 1]


def test_child_that_dies_is_told_apart_from_one_that_is_late() -> None:
    """Without it a crash would take the whole time limit."""
    with nursery(lambda code: os._exit(3), wall_s=300) as one:
        assert results(one, "a") == ["died"]


def test_floods_are_cut_off() -> None:
    """Without it a program that answers without end fills the memory of the search."""
    with nursery(lambda code: "x" * (1 << 22)) as one:
        assert results(one, "a") == ["flood"]


def test_broken_off_iteration_does_not_mix_into_the_next() -> None:
    """Without it a program could get the number of one that was asked for before an interrupt."""
    with nursery(lambda code: int(code), workers=2) as one:
        for _ in one.evaluate(["1", "2", "3"]):
            break
        assert results(one, "4", "5") == [4, 5]


def test_nursery_that_was_killed_is_an_error_with_a_remedy() -> None:
    """Without it a search would wait for ever for evaluations that nobody runs."""
    with nursery(lambda code: 1) as one:
        os.kill(one._pid, signal.SIGKILL)
        with pytest.raises(UserError, match="killed from outside"):
            results(one, "a")


def test_stopped_nursery_ends_with_its_parent() -> None:
    """Without it a process that somebody had paused would stay for ever, with all the memory it was forked with."""
    receive, send = os.pipe()
    parent = os.fork()
    if parent == 0:
        with nursery(lambda code: 1) as one:
            results(one, "a")
            os.write(send, str(one._pid).encode())
            time.sleep(600)
    pid = int(os.read(receive, 20))
    os.kill(pid, signal.SIGSTOP)
    _wait_until(lambda: _state(pid) == "T")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    _wait_until(lambda: _state(pid) in ("Z", ""))  # a zombie where nobody looks after orphans
    os.close(receive)
    os.close(send)


def _state(pid: int) -> str:
    """The letter that the kernel has for what a process does; empty where there is none of that id."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
    return ""


def test_prints_of_programs_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """Without it programs that print would drown the host's own log."""
    with nursery(lambda code: print("noise", flush=True)) as one:
        results(one, "a")
    assert capfd.readouterr().out == ""


def test_start_method_is_left_alone() -> None:
    """Without it (as in EoH 0.2 and LLM4AD) the user's own processes start in another way afterwards."""
    before = multiprocessing.get_start_method(allow_none=True)
    with nursery(lambda code: 1) as one:
        results(one, "a")
    assert multiprocessing.get_start_method(allow_none=True) == before


def _wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.02)
