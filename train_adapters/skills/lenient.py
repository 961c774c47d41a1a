"""JSON as language models write it: in fences, between words, with a comma too many, or cut off at the end."""

from __future__ import annotations

import json
import re
from typing import Any

LONGEST_REPLY = 50_000
"""Characters of a reply that are looked at."""

_ATTEMPTS = 200
"""Braces that are tried as the beginning of an object: a reply of nothing but braces must not take minutes."""

_COMMA_TOO_MANY = re.compile(r",(?=\s*[}\]])")
_DECODER = json.JSONDecoder(strict=False)  # lets line breaks stand within texts


def objects_of(reply: str) -> list[dict[str, Any]]:
    """The objects of a reply, in order; of an object that only holds lists of objects, those.

    What lies within an object that can be read is not looked at again. An object that is cut off is skipped, and what
    lies within it is not.
    """
    text = _COMMA_TOO_MANY.sub("", reply[:LONGEST_REPLY])
    found: list[dict[str, Any]] = []
    at = text.find("{")
    for _ in range(_ATTEMPTS):
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found += _unpacked(value)
        at = text.find("{", end)
    return found


def echoes(text: str, example: str) -> bool:
    """Whether a text has no word but those of the example that the model was shown: small models repeat it."""
    return set(re.findall(r"\w+", text.casefold())) <= set(re.findall(r"\w+", example.casefold()))


def words_of(value: Any) -> str:
    """A value as text: a list line by line, anything that is no text or number as nothing."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(words_of, value)))
    return str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def _unpacked(value: dict[str, Any]) -> list[dict[str, Any]]:
    lists = [inner for inner in value.values() if isinstance(inner, list)]
    within = [one for inner in lists for one in inner if isinstance(one, dict)]
    return within or [value]
