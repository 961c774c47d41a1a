"""Whether an answer is right, and which rule says so. Every use of the mathematical tasks asks this scorer.

Where a number is asked for, a sum, a product or a remainder of numbers is a calculation that was not carried out: it is
no answer, or the question itself would be one. For everything else these are the rules, in their order:

1. `math-verify`: both answers as LaTeX between dollar signs, in a process of its own. Plain numbers are handed over as
   exact fractions, so that nothing is rounded.
2. `exact`: two plain numbers are equal or not.
3. `text`: the same signs, but for spaces, case and what carries no meaning.

The first rule that finds the answers equal decides. If none does, they differ by the first rule that could read both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from train_adapters.math_tasks.exact import exact_value, formula
from train_adapters.math_tasks.notation import LONGEST, as_latex, last_boxed, plain_text, tidied
from train_adapters.math_tasks.verifier import Opinion, Verifier, VerifierFailed

RULES = ("math-verify", "exact", "text", "unfinished", "too costly", "none given")

_SHOWN = 60
_UNFINISHED = re.compile(
    r"[\d)}!] ?(?:[-+*×÷]|\\(?:times|cdot|div|[bp]?mod)(?![A-Za-z])) ?[({]?[-+]?[\d\\]|(?<![\d_])\d+ ?\(|\) ?\("
)
"""Two numbers that are yet to be added, multiplied or divided. A slash is a fraction."""
_ONLY_WORDS = re.compile(r"[A-Za-z]{2,}(?:[ '-][A-Za-z]+)*")
"""Words that math-verify takes for products of letters, whose order does not matter."""
_MISREAD = re.compile(
    r"(?i)(?<![\\a-z])(?:more|less|fewer|greater|least|most|not|no|than|about|approximately|roughly|hundred|thousand|"
    r"million|billion|dozen)(?![a-z])"  # left out by math-verify: 3 or more is not 3, 3 million neither
    r"|(?<![\d_^])\d[ \d]* \d"  # digits with spaces that separate no thousands: multiplied or added
    r"|\d\}? ?_"  # digits in another base: read without it
    r"|\^ ?\{[^{}]*\} ?\^"  # a power of a power without brackets
    r"|[-+*/^=_|<>]$|[@#?\"]|\\\\|\d ?\| ?\d|->|\\to\b|rightarrow|\\implies"  # only a part of it is read
)
"""Texts that math-verify reads as something else."""


@dataclass(frozen=True)
class Verdict:
    """What the scorer says of an answer.

    Attributes:
        correct: whether it is right.
        rule: which of `RULES` decided. `unfinished`: a calculation in place of a number. `too costly`: comparing it
            used up the processor time of a pair, and no other rule found it right. `none given`: there is no answer.
        prediction: the answer, tidied.
        expected: the right one, tidied.
    """

    correct: bool
    rule: str
    prediction: str
    expected: str

    def __str__(self) -> str:
        """One line for the log."""
        relation = "is" if self.correct else "is not"
        return f"{self.rule}: {self.prediction[:_SHOWN]!r} {relation} {self.expected[:_SHOWN]!r}"


def prediction_of(answer: str | None) -> str:
    r"""The answer in the text of a final answer: what its last `\boxed{}` holds, else the text itself."""
    boxed = last_boxed(answer or "")
    text = ((answer or "") if boxed is None else boxed).strip().strip("*`").strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


class Scorer:
    """Judges answers, several at once.

    Args:
        verifier: runs math-verify; None for one of its own.

    Raises:
        UserError: math-verify is not installed.
    """

    def __init__(self, verifier: Verifier | None = None) -> None:
        self._verifier = Verifier() if verifier is None else verifier

    async def verdict(self, prediction: str, expected: str) -> Verdict:
        """Compare an answer with the right one. It copes with everything that a model writes.

        Args:
            prediction: see `prediction_of`.
            expected: the right answer.

        Raises:
            VerifierFailed: math-verify failed, not by the answer's doing, and the other rules cannot tell. Such an
                answer is neither right nor wrong.
        """
        prediction, expected = tidied(prediction), tidied(expected)

        def ruled(correct: bool, rule: str) -> Verdict:
            return Verdict(correct, rule, prediction, expected)

        if not prediction:
            return ruled(False, "none given")
        values = exact_value(prediction), exact_value(expected)
        if values[0] is None and values[1] is not None and _UNFINISHED.search(prediction):
            return ruled(False, "unfinished")
        failure: VerifierFailed | None = None
        try:
            opinion = await self._opinion(prediction, expected)
        except VerifierFailed as error:
            opinion, failure = Opinion.UNREAD, error
        if opinion is Opinion.EQUAL:
            return ruled(True, "math-verify")
        if None not in values and values[0] == values[1]:
            return ruled(True, "exact")
        if plain_text(prediction) == plain_text(expected):
            return ruled(True, "text")
        if opinion is Opinion.DIFFERENT:
            return ruled(False, "math-verify")
        if None not in values:
            return ruled(False, "exact")
        if failure is not None:
            raise failure
        return ruled(False, "too costly" if opinion is Opinion.TOO_COSTLY else "text")

    def close(self) -> None:
        """End the processes. May be called again."""
        self._verifier.close()

    async def _opinion(self, prediction: str, expected: str) -> Opinion:
        formulas = [_formula(prediction), _formula(expected)]
        if None in formulas:
            return Opinion.UNREAD
        return await self._verifier.ask(str(formulas[0]), str(formulas[1]))


def _formula(text: str) -> str | None:
    """A tidied answer as math-verify is to read it; None for what it would read as something else."""
    if len(text) > LONGEST:
        return None
    value = exact_value(text)
    if value is not None:
        return formula(value)
    latex = as_latex(text)
    misread = _MISREAD.search(latex) and "\\begin{" not in latex and not latex.endswith("|")
    return None if misread or _ONLY_WORDS.fullmatch(latex) else latex
