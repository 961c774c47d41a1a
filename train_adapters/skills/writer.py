"""Asking the language model that writes skills: in batches, again where an answer cannot be used, and never silently.

It is any `LanguageModel`: an endpoint, or the model in training itself, which then answers on its current weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from eoh_esopt.engine.streams import place_seed
from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import LanguageModel, Reply, Request

ATTEMPTS = 3
"""How often a question is asked before its answer is given up, each time with another seed."""

PLAIN = 'Reply with a plain list only, each item on a line that begins with "- ".'
"""How a question ends where JSON was too much for the model."""

_LONGEST_TEXT = 200

T = TypeVar("T")


class FailureKind(str, Enum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"
    """The endpoint did not answer, however often it was asked: the infrastructure's failure."""
    TOO_LONG = "too_long"
    """The question fills the model's context."""
    UNREADABLE = "unreadable"
    """Nothing that was asked for stands in the reply."""


@dataclass(frozen=True)
class Failure:
    """A question without an answer.

    Attributes:
        what: which question.
        kind: why there is no answer.
        text: what was said, shortened.
        attempts: how often it was asked.
    """

    what: str
    kind: FailureKind
    text: str
    attempts: int


@dataclass(frozen=True)
class Cost:
    """What asking cost: replies, and tokens read and written."""

    calls: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.new_tokens + other.new_tokens,
        )


@dataclass(frozen=True)
class Answers(Generic[T]):
    """What some questions were answered with.

    Attributes:
        found: by question, in their order; those without an answer are missing.
        failures: of the others.
        cost: of all attempts.
    """

    found: Mapping[str, T]
    failures: tuple[Failure, ...]
    cost: Cost


@dataclass(frozen=True)
class Writer:
    """A language model that answers questions in words.

    Attributes:
        model: answers.
        seed: of the run.
        place: what the questions are for, part of their seeds.
        new_tokens: most tokens of an answer.
    """

    model: LanguageModel
    seed: int
    place: str
    new_tokens: int

    def ask(self, questions: Mapping[str, Sequence[str]], read: Callable[[str], T | None]) -> Answers[T]:
        """Answers to questions that do not depend on one another.

        Args:
            questions: by what they are about, each in the forms it is asked in: the first, and where that had no use
                the next, and so on; the last form is asked again.
            read: what a reply says; None where it does not say what was asked for.

        Raises:
            UserError: the model in training is gone. An endpoint that is gone makes failures instead.
        """
        found: dict[str, T] = {}
        failures: dict[str, Failure] = {}
        cost = Cost()
        left = list(questions)
        for attempt in range(ATTEMPTS):
            replies, failed = self._replies(questions, left, attempt)
            failures |= failed
            for what, reply in replies.items():
                cost += Cost(1, reply.prompt_tokens, reply.new_tokens)
                answer = read(reply.text)
                if answer is not None:
                    found[what] = answer
                    failures.pop(what, None)
                else:
                    failures[what] = _unused(what, reply, attempt + 1)
            left = [what for what in replies if what not in found and failures[what].kind is FailureKind.UNREADABLE]
        ordered = {what: found[what] for what in questions if what in found}
        return Answers(ordered, tuple(failures[what] for what in questions if what in failures), cost)

    def _replies(
        self, questions: Mapping[str, Sequence[str]], asked: Sequence[str], attempt: int
    ) -> tuple[dict[str, Reply], dict[str, Failure]]:
        """The replies to some questions, and the failures of those that got none."""
        requests = [self._request(what, questions[what], attempt) for what in asked]
        replies: dict[str, Reply] = {}
        failures: dict[str, Failure] = {}
        for batch in self.model.batches(requests) if requests else ():
            try:
                written = dict(enumerate(self.model.generate([requests[place] for place in batch])))
            except PartialReplies as error:
                written = error.received
                lost = [asked[place] for number, place in enumerate(batch) if number not in written]
                failures |= {
                    one: Failure(one, FailureKind.UNREACHABLE, _short(str(error)), attempt + 1) for one in lost
                }
            replies |= {asked[batch[number]]: reply for number, reply in written.items()}
        return replies, failures

    def _request(self, what: str, forms: Sequence[str], attempt: int) -> Request:
        seed = place_seed(f"{self.seed}/{self.place}/{what}/{attempt}")
        return Request(forms[min(attempt, len(forms) - 1)], "", seed, new_tokens=self.new_tokens)


def _unused(what: str, reply: Reply, attempts: int) -> Failure:
    too_long = reply.truncated and not reply.new_tokens and not reply.text
    kind = FailureKind.TOO_LONG if too_long else FailureKind.UNREADABLE
    return Failure(what, kind, _short(reply.text), attempts)


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TEXT]
