"""Programs of a host evaluated by the user's own code: in processes of ours, or by the host's machinery.

Either way the search gets an `Outcome` a program, with the raw number that the user's code returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eoh_esopt.hosts.host import Host, HostFacts
from eoh_esopt.hosts.nursery import Nursery
from eoh_esopt.hosts.trial import report
from eoh_esopt.sandbox import verdict
from eoh_esopt.sandbox.limits import Limits
from operators.records import Outcome, Status
from problems.base import NotFinite, WrongShape, as_real

_NO_CAP = 1 << 62
"""Bytes: the user's evaluation may use what memory there is."""


class SandboxEvaluation:
    """Evaluates in a nursery, as many programs at once as the user asked for. A context manager.

    Args:
        host: the user's object. Its problem is evaluated as it stands now.
        facts: of the host.

    Raises:
        UserError: the nursery cannot be started.
    """

    isolation_level = (
        "a process for each evaluation, ended on time with all it started; no walls around it, the evaluation is the "
        "user's own"
    )

    def __init__(self, host: Host, facts: HostFacts) -> None:
        self._facts = facts
        self._limits = Limits(wall_s=facts.timeout, memory_bytes=_NO_CAP)
        self._nursery = Nursery(
            lambda code, progress: report(host.evaluate, facts, code, progress),
            workers=facts.workers,
            wall_s=facts.timeout,
        )

    def __enter__(self) -> SandboxEvaluation:
        return self

    def __exit__(self, *_: object) -> None:
        self._nursery.close()

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """(position, outcome) of each program as it finishes.

        Raises:
            UserError: the nursery was killed.
        """
        for place, ended, body in self._nursery.evaluate(codes):
            yield place, _outcome(ended, body, self._facts, self._limits)


class HostEvaluation:
    """Evaluates one program after the other by the host's own machinery, in this process. A context manager."""

    isolation_level = "the host's own evaluator: its promises hold, not ours"

    def __init__(self, host: Host, facts: HostFacts) -> None:
        self._host, self._facts = host, facts

    def __enter__(self) -> HostEvaluation:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """(position, outcome) of each program in its turn."""
        for place, code in enumerate(codes):
            value = self._host.evaluate_as_host(code)
            yield place, _valued(value, 0, self._facts)


def _outcome(ended: dict[str, Any], body: bytes, facts: HostFacts, limits: Limits) -> Outcome:
    calls = max(int(ended.get("calls", 0)), 0)
    try:
        unanswered = verdict.without_answer(ended, calls, limits)
    except verdict.Broken as error:
        return Outcome(Status.INFRASTRUCTURE, detail=verdict.printable(f"given up after 3 attempts: {error}"))
    if unanswered is not None:
        return unanswered
    status, header, data = verdict.answered(body)
    if status is not Status.OK:
        return verdict.failed(status, header, data, calls)
    return _valued(header.get("value"), calls, facts)


def _valued(value: object, calls: int, facts: HostFacts) -> Outcome:
    """The outcome of what the user's code returned."""
    if value is None:
        return Outcome(Status.INVALID_SOLUTION, calls=calls, detail="the evaluation returned None")
    try:
        number = as_real(value, "the evaluation")
    except NotFinite as error:
        return Outcome(Status.NOT_FINITE, calls=calls, detail=verdict.printable(error))
    except WrongShape as error:
        return Outcome(Status.WRONG_SHAPE, calls=calls, detail=verdict.printable(error))
    objective = -number if facts.maximise else number
    return Outcome(Status.OK, objective, (objective,), calls)
