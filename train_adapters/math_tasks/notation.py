"""How answers are written: one tidy spelling for what readers take to be the same signs. Nothing is evaluated here."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 1000
"""Characters of an answer; a longer one is no answer to a question of these sets, and is compared as text alone."""

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_SIGNS = str.maketrans({"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-", "\u2044": "/", "\uff1d": "="})
_SPACES = re.compile(r"(?:(?<!\\)\\[,;:! ]|\\q?quad(?![A-Za-z])|~|\s)+")
_DROPPED = re.compile(r"\\(?:left|right|displaystyle|limits)(?![A-Za-z])|\\?\$|(?<!\\)\\[()\[\]]")
_WORDS = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|mbox)\s*\{([^{}]*)\}")
_POWER = re.compile(r" ?\*\* ?([+-]?(?:\d+(?:\.\d+)?|[A-Za-z]\w*))")
_DECIMAL = re.compile(r"(?<![\d.,])(\d*)\.(\d+)(?![\d.]| ?%)")
_NAMES = {"pi": r"\pi ", "infinity": r"\infty "}
_NAME = re.compile(rf"(?<![\\A-Za-z])(?:{'|'.join(_NAMES)})(?![A-Za-z])")


def last_boxed(text: str) -> str | None:
    r"""What the last `\boxed{...}` holds; None where there is none. One that is never closed ends with its line."""
    begins = [found.end() for found in _BOXED.finditer(text)]
    if not begins:
        return None
    rest, depth = text[begins[-1] :], 1
    for place, sign in enumerate(rest):
        escaped = place > 0 and rest[place - 1] == "\\"
        depth += 0 if escaped else (sign == "{") - (sign == "}")
        if depth == 0:
            return rest[:place]
    return rest.split("\n", 1)[0]


def tidied(text: str) -> str:
    r"""The answer without what carries no meaning: delimiters, `\left`, kinds of space and of minus, a final full stop.

    Digits of other scripts become 0 to 9. Raised digits do not: ² is no 2.
    """
    text = "".join(_digit(sign) for sign in text).translate(_SIGNS)
    text = _DROPPED.sub("", text).replace("\\%", "%").replace("{,}", ",")
    text = re.sub(r"\\[dtc]frac(?![A-Za-z])", r"\\frac", text)
    text = _SPACES.sub(" ", text).strip()
    return text.removesuffix(".").strip() if not text.endswith("..") else text


def as_latex(text: str) -> str:
    """A tidied answer as the body of a LaTeX formula. Decimals in it become fractions, so that nothing is rounded."""
    text = _POWER.sub(r"^{\1}", text).replace("**", "^")
    text = _NAME.sub(lambda found: _NAMES[found.group()], text)
    return _DECIMAL.sub(_as_fraction, text).replace("%", r"\%")


def plain_text(text: str) -> str:
    """A tidied answer as the last rule compares it: words without their commands, no spaces, no difference of case."""
    return "".join(_WORDS.sub(r"\1", text).split()).casefold()


def _digit(sign: str) -> str:
    value = None if sign.isascii() else unicodedata.decimal(sign, None)
    return sign if value is None else str(value)


def _as_fraction(found: re.Match[str]) -> str:
    whole, decimals = found.groups()
    return rf"\frac{{{whole}{decimals}}}{{1{'0' * len(decimals)}}}"
