"""What another engine has to offer so that its search can learn: the records and the protocol of an adapter.

An adapter knows one host and nothing of models, directions or rewards. It reads the user's object, evaluates one
program as the host would, and runs the host's own loop with the calls to its language model and its batches led to a
`Session`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from eoh_esopt.sandbox.candidate import Progress
from operators.records import Outcome

if TYPE_CHECKING:
    from eoh_esopt.hosts.session import Session


@dataclass(frozen=True)
class HostFacts:
    """What the user set up, in our terms.

    Attributes:
        name: the host, for people.
        problem: name of the user's problem.
        function: what a program must define at its top level: a function or a class.
        arguments: its argument names, where the host knows them.
        template: source of a plain solution; empty where the host has none.
        operators: of the host's search, in its order, without i1.
        population: heuristics kept.
        generations: as planned.
        drawn: candidates of each operator to be expected in one generation of the host's own schedule.
        workers: evaluations that may run at once.
        timeout: limit of one evaluation, in seconds.
        folder: where the host writes; our folder goes into it.
        maximise: whether the host's numbers are better when they are larger.
        limit: attempts beyond the start population after which the host ends by itself; None where it has no such end.
    """

    name: str
    problem: str
    function: str
    arguments: tuple[str, ...] | None
    template: str
    operators: tuple[str, ...]
    population: int
    generations: int
    drawn: Mapping[str, float]
    workers: int
    timeout: float
    folder: Path
    maximise: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class Parent:
    """A member of the host's population.

    Attributes:
        code: Python source.
        idea: the host's description of it.
        objective: lower is better, as the host stores it (negated where the host maximises).
    """

    code: str
    idea: str
    objective: float


@dataclass(frozen=True)
class Draft:
    """What the host's own code made of the model's replies.

    Attributes:
        code: the program to evaluate.
        idea: its description.
        parents: those that its last prompt showed.
    """

    code: str
    idea: str
    parents: tuple[Parent, ...]


@dataclass(frozen=True)
class Slot:
    """A candidate to be written.

    Attributes:
        operator: its name in the host.
        write: runs the host's own code from the choice of parents to the finished program. Whatever that code asks
            the model for has to come to `Session.ask`. Returns None where the replies hold no program. Runs in a
            thread of its own, but never at the same time as another one.
    """

    operator: str
    write: Callable[[], Draft | None]


@dataclass(frozen=True)
class Written:
    """What became of a slot.

    Attributes:
        draft: the program; None where there is none.
        outcome: its outcome; None where the budget ended before it was finished.
        note: what a host may keep beside the candidate: JSON values by name, under "esopt".
    """

    draft: Draft | None
    outcome: Outcome | None
    note: Mapping[str, Any]


class BudgetSpent(BaseException):
    """The budget is spent: the host's loop has to end. Not an `Exception`, which hosts swallow."""


@dataclass(frozen=True)
class Seam:
    """A place of a host's code that an adapter takes hold of.

    Attributes:
        name: module and name, with the arguments where they matter.
        found: whether it is there.
        detail: what is there instead; empty where it is found.
    """

    name: str
    found: bool
    detail: str = ""


class Host(Protocol):
    """A user's search object of one kind of host."""

    @property
    def facts(self) -> HostFacts:
        """What the user set up."""
        ...

    def check(self) -> None:
        """Look whether the search can be attached to. Changes nothing.

        Raises:
            UserError: it ran already, a setting cannot be used, or a seam of the host is missing.
        """
        ...

    def evaluate(self, code: str, progress: Progress) -> object:
        """The user's own evaluation of one program. Called in a process of its own, so it may change what it likes.

        Args:
            code: the program.
            progress: counts the calls of the program's function, where the host lets us see them.

        Returns:
            What the user's code returned: a number in the host's sense, None for a program that it rejects.

        Raises:
            Exception: whatever the user's code raised, also where the host swallows it.
        """
        ...

    def evaluate_as_host(self, code: str) -> object:
        """The same by the host's own machinery, in this process."""
        ...

    def drive(self, session: Session) -> None:
        """Run the host's search to its end, or until the session's budget is spent."""
        ...
