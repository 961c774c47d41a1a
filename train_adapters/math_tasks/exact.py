"""Plain numbers as the exact fractions they are: whole, decimal, mixed and repeating ones, fractions, powers of ten.

No floats: 0.333333 is not a third, and 1e-13 is not 2e-13.
"""

from __future__ import annotations

import re
from fractions import Fraction

_MOST_EXPONENT = 400

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?: \d{3})+|\d+)"
_SIMPLE = rf"(?:{_DIGITS}(?:\.\d*)?|\.\d+)"
_PART = r"(?:\{\s*([+-]?\d+)\s*\}|(\d))"
_TIMES_TEN = r" ?(?:\\times|\\cdot|\*|×|x) ?10 ?\^ ?"
_NUMBER = re.compile(rf"({_SIMPLE})(?:[eE]([+-]?\d+)|{_TIMES_TEN}(?:\{{ ?([+-]?\d+) ?\}}|(\d)))?")
_SLASHED = re.compile(rf"({_DIGITS}) ?/ ?(-?{_DIGITS})")
_FRACTION = re.compile(rf"\\frac ?{_PART} ?{_PART}")
_MIXED = re.compile(rf"({_DIGITS})(?: (?:and )?(\d+) ?/ ?(\d+)| ?\\frac ?{_PART} ?{_PART})")
_REPEATING = re.compile(r"(\d*)\.(\d*)(?:\\overline ?\{(\d+)\}|\\dot ?\{?(\d)\}?|\((\d+)\))")


def exact_value(text: str) -> Fraction | None:
    """The number that a tidied answer is; None where it is anything else.

    A comma or a space between groups of three digits separates thousands. Percent signs and units are not read here.
    """
    sign, body = (-1 if text.startswith("-") else 1), text[1:].strip() if text[:1] in ("-", "+") else text
    for pattern, read in _READERS:
        if found := pattern.fullmatch(body):
            try:
                return sign * read(*found.groups())
            except (ZeroDivisionError, ValueError):  # no number, or longer than Python reads
                return None
    return None


def formula(value: Fraction) -> str:
    """The number as a LaTeX formula that loses nothing."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _number(simple: str, *exponents: str | None) -> Fraction:
    exponent = int(next(filter(None, exponents), "0"))
    if abs(exponent) > _MOST_EXPONENT:
        raise ValueError("the exponent is too large")
    return Fraction(_joined(simple).removesuffix(".")) * Fraction(10) ** exponent


def _slashed(above: str, below: str) -> Fraction:
    return Fraction(int(_joined(above)), int(_joined(below)))


def _fraction(*parts: str | None) -> Fraction:
    above, below = filter(None, parts)
    return Fraction(int(above), int(below))


def _mixed(whole: str, *parts: str | None) -> Fraction:
    return int(_joined(whole)) + _fraction(*parts)


def _repeating(whole: str, first: str, *repeated: str | None) -> Fraction:
    again = next(filter(None, repeated), "0")
    begins = Fraction(int(f"{whole}{first}" or "0"), 10 ** len(first))
    return begins + Fraction(int(again), (10 ** len(again) - 1) * 10 ** len(first))


def _joined(digits: str) -> str:
    return digits.replace(",", "").replace(" ", "")


_READERS = (
    (_NUMBER, _number),
    (_SLASHED, _slashed),
    (_FRACTION, _fraction),
    (_MIXED, _mixed),
    (_REPEATING, _repeating),
)
