"""Text of unknown origin, such as a model's replies, made safe to write to a file."""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, lone surrogates, and the marks that make text read in another order than it stands in."""


def plain(text: str) -> str:
    """The text with what no page may hold, or what would deceive its reader, replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))
