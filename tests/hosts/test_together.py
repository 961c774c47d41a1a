"""Host code in lockstep."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.hosts.together import Stopped, ask, write_together


def asking(name: str, times: int) -> Callable[[], str]:
    """A writer that asks so often, and returns what it heard last."""

    def write() -> str:
        heard = name
        for number in range(times):
            heard = ask(f"{name}{number}")
        return heard

    return write


def echo(asked: Sequence[tuple[int, str]]) -> list[str]:
    return [prompt.upper() for _, prompt in asked]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6))
def test_each_writer_gets_its_own_answers(times: list[int]) -> None:
    """Without it a candidate could be made of the reply to another one's prompt."""
    writers = [asking(f"w{number}_", count) for number, count in enumerate(times)]
    expected = [(True, f"W{number}_{count - 1}" if count else f"w{number}_") for number, count in enumerate(times)]
    assert write_together(writers, echo) == expected


def test_questions_asked_at_the_same_time_are_one_batch() -> None:
    """Without it each reply would be written by itself, several times as slowly."""
    rounds: list[list[str]] = []

    def answer(asked: Sequence[tuple[int, str]]) -> list[str]:
        rounds.append([prompt for _, prompt in asked])
        return echo(asked)

    write_together([asking("a", 2), asking("b", 1), asking("c", 3)], answer)
    assert rounds == [["a0", "b0", "c0"], ["a1", "c1"], ["c2"]]


def test_turns_are_taken_in_order_and_one_at_a_time() -> None:
    """Without it hosts that draw from the global generators would not repeat their runs."""

    def draw() -> tuple[float, float]:
        before = random.random()
        ask("?")
        return before, random.random()

    random.seed(3)
    drawn = [one for _, one in write_together([draw] * 4, echo)]
    random.seed(3)
    first, second = ([random.random() for _ in range(4)] for _ in range(2))
    assert drawn == list(zip(first, second, strict=True))


def test_writers_that_get_no_reply_are_stopped() -> None:
    """Without it a spent budget would leave host code waiting for ever."""
    ended = write_together(
        [asking("a", 1), asking("b", 2)], lambda asked: ["x" if place == 0 else None for place, _ in asked]
    )
    assert ended == [(True, "x"), (False, None)]


def test_swallowed_stop_is_still_a_stop() -> None:
    """Without it host code with a bare `except` would hand in a candidate that was never finished."""

    def stubborn() -> str:
        try:
            return ask("a")
        except BaseException:  # noqa: BLE001 - as some hosts do
            return "made up"

    assert write_together([stubborn], lambda asked: [None])[0][0] is False


@pytest.mark.parametrize("failing", ["writer", "answer"])
def test_errors_reach_the_caller_and_leave_no_thread(failing: str) -> None:
    """Without it an error in a host's code would hang the search, or vanish."""
    unwound: list[bool] = []

    def waiting() -> str:
        try:
            return ask("a")
        except Stopped:
            unwound.append(True)
            raise

    def broken() -> str:
        ask("b")
        raise ZeroDivisionError

    def answer(asked: Sequence[tuple[int, str]]) -> list[str]:
        raise ZeroDivisionError

    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        write_together([broken, waiting], answer if failing == "answer" else echo)
    assert unwound == [True]
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_asking_outside_a_batch_is_an_error() -> None:
    """Without it an adapter's mistake would wait for ever for its turn."""
    with pytest.raises(RuntimeError, match="outside a batch"):
        ask("hello")
