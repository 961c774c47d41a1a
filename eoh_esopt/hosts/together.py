"""Several candidates written at once: host code in lockstep, and what it asks the model as one batch.

A host's code asks its model one question at a time and waits. So each candidate's code gets a thread, the threads take
turns in a fixed order, one at a time, and when all of them wait (or are done) their questions are answered together.
What comes out does not depend on timing: global random generators are drawn from in the order of the turns.

A question is a prompt and its answer a reply, or whatever else an adapter's threads ask of the one that runs them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Answer = Callable[[Sequence[tuple[int, Any]]], Sequence[Any]]
"""Takes (position of the writer, question) of every writer that waits; returns the answers, None to stop a writer."""


class Stopped(BaseException):
    """Unwinds a writer that gets no reply. Not an `Exception`, which hosts swallow."""


class _Writer(threading.Thread, Generic[T]):
    def __init__(self, write: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._write = write
        self._turn, self._rest = threading.Semaphore(0), threading.Semaphore(0)
        self._reply: Any = None
        self.prompt: Any = None
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        self._turn.acquire()
        try:
            self.result = self._write()
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the turns are dealt out
            self.error = error
        self._rest.release()

    def ask(self, prompt: object) -> Any:
        """Called by the writer's own code: end the turn, and go on with the reply in the next."""
        self.prompt = prompt
        self._rest.release()
        self._turn.acquire()
        if self._reply is None:
            raise Stopped
        return self._reply

    def take_turn(self, reply: object = None) -> None:
        """Run until the writer asks something or is done."""
        self.prompt, self._reply = None, reply
        self._turn.release()
        self._rest.acquire()


def ask(prompt: object) -> Any:
    """Ask from inside a writer.

    Raises:
        RuntimeError: the caller is no writer (an error of the adapter).
    """
    writer = threading.current_thread()
    if not isinstance(writer, _Writer):
        raise RuntimeError("The model was asked outside a batch.")
    return writer.ask(prompt)


def write_together(writers: Sequence[Callable[[], T]], answer: Answer) -> list[tuple[bool, T | None]]:
    """Run the writers to their ends.

    Returns:
        For each writer whether it came to its end, and what it returned.

    Raises:
        BaseException: what the first failing writer or `answer` raised; the others are stopped.
    """
    threads: list[_Writer[T]] = [_Writer(write) for write in writers]
    stopped: set[int] = set()
    try:
        for thread in threads:
            thread.start()
            _turn(thread)
        while waiting := [(place, one.prompt) for place, one in enumerate(threads) if one.prompt is not None]:
            replies = answer(waiting)
            for (place, _), reply in zip(waiting, replies, strict=True):
                if reply is None:
                    stopped.add(place)
                _turn(threads[place], reply)
    finally:
        for thread in threads:
            while thread.prompt is not None:  # it may ask again while it unwinds
                thread.take_turn()
    return [(place not in stopped, thread.result) for place, thread in enumerate(threads)]


def _turn(thread: _Writer[T], reply: object = None) -> None:
    thread.take_turn(reply)
    if thread.error is not None:
        raise thread.error
