"""The process that runs math-verify: pairs of answers come in on standard input, opinions go out, a JSON line each.

math-verify hands text that a model wrote to a computer algebra system, where a few characters can cost hours or all
memory. So it runs here under caps: a pair that uses up its processor time ends the process by SIGPROF, which tells its
owner what happened, and memory is limited. Its own time limits work in main threads only and count the seconds that
others use; they are off.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any, TextIO

_DECIMALS = 12
"""Decimals to which floats are compared: what a formula with a decimal number in it leaves to rounding."""
_DIGITS = 40
"""Significant digits at which formulas without one are compared."""
_UNREAD = {"equal": False, "read": False}


def main(cpu_s: float, memory_bytes: int) -> None:
    """Answer until standard input is closed.

    Args:
        cpu_s: processor seconds for one pair.
        memory_bytes: address space of the process.
    """
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever the libraries print is no reply
    _limit(memory_bytes)
    logging.disable()
    _compared(r"\frac{1}{2}", "x^2+1")  # so that no pair pays for the imports; and a broken installation is told
    _send(replies, {"ready": True})
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        reply = _opinion(json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        _send(replies, reply)


def _opinion(pair: Mapping[str, str]) -> dict[str, Any]:
    """Whether the pair is equal, and whether both were read as mathematics."""
    try:
        return _compared(pair["expected"], pair["prediction"])
    except Exception:  # noqa: BLE001 - what is no mathematics makes parsers fail in every way there is
        return _UNREAD


def _compared(expected: str, prediction: str) -> dict[str, Any]:
    from math_verify import LatexExtractionConfig, parse, verify

    targets = [LatexExtractionConfig()]
    right, said = (
        parse(f"${text}$", targets, fallback_mode="no_fallback", parsing_timeout=None)
        for text in (expected, prediction)
    )
    if not (right and said):
        return _UNREAD
    return {"equal": bool(verify(right, said, _DECIMALS, _DIGITS, timeout_seconds=None)), "read": True}


def _limit(memory_bytes: int) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _send(replies: TextIO, reply: Mapping[str, Any]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()
