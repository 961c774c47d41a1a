"""What a reply asks for: a command, or to end with an answer.

Models write in many shapes, and this is the one order in which they are read:

1. Reasoning up to `</think>` does not count, nor does anything from an invented "Observation" on.
2. An action is read from the first place where one can be, in any of the forms of `train_adapters.react.actions`. So of
   two actions the first is taken: the second was written without knowing what the first would show.
3. Only where there is no action, a final answer is taken: the last line of the form "Final answer: ..." or
   "Answer: ...". So an answer beside an action waits until the action's result has been seen.
4. Anything else asks for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from train_adapters.react.actions import Call, first_call

END_OF_THINKING = "</think>"
_START_OF_THINKING = "<think>"

_COLON = "[:\uff1a]"
_MARKUP = r"[ \t>*_#`$\-]*"
_OBSERVATION = re.compile(rf"^{_MARKUP}observation\b[^\n]{{0,40}}?{_COLON}", re.IGNORECASE | re.MULTILINE)
_LEAD = r"(?:(?:so|thus|hence|therefore|and)\b[ \t,]*)?(?:(?:the|my)[ \t]+)?"
_FINAL = re.compile(
    rf"^{_MARKUP}{_LEAD}(?:final[ \t]+)?answer\b{_MARKUP}(?:is\b{_MARKUP})?(?:{_COLON}|(?=\\boxed))(?P<text>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_ANSWER = 2_000
_EDGES = " \t\r\n*_`"


@dataclass(frozen=True)
class Final:
    """An answer that ends the episode.

    Attributes:
        text: what follows the colon, on that line or else on the next that is not empty.
    """

    text: str


Move = Call | Final


def said(reply: str) -> str:
    """What a reply says: without the reasoning before it and whatever it invents of the tool's output."""
    text = reply.rpartition(END_OF_THINKING)[2]
    text = text.partition(_START_OF_THINKING)[0]
    invented = _OBSERVATION.search(text)
    return text[: invented.start()].strip() if invented else text.strip()


def parse_move(reply: str) -> Move | None:
    """The move that a reply asks for; None where it asks for none."""
    text = said(reply)
    return first_call(text) or _final(text)


def _final(text: str) -> Final | None:
    places = reversed(list(_FINAL.finditer(text)))
    answer = next(filter(None, (_answer_at(text, place) for place in places)), None)
    return None if answer is None else Final(answer)


def _answer_at(text: str, found: re.Match[str]) -> str:
    """The answer of a line, with the lines that close its braces or follow an empty one."""
    end = found.start("text") + _LONGEST_ANSWER
    rest = text[found.start("text") : end]
    first, *lines = rest.strip(_EDGES).split("\n")
    answer = first
    for line in lines:
        if answer.count("{") <= answer.count("}"):
            break
        answer += f"\n{line}"
    return answer.strip(_EDGES)
