"""From what the model wrote to what a host keeps of it: a program and its description.

Takes the place of the hosts' own extraction, which loses good programs: a fence before the program, a reply without a
description, reasoning that holds a fence, a `return` that is no plain name.
"""

from __future__ import annotations

from eoh_esopt.engine.replies import parse_reply

NO_IDEA = "No description was given."
"""Hosts show the description of a parent to the model, and throw replies without one away."""


def read_reply(text: str, function: str) -> tuple[str, str] | None:
    """The program and its description; None where the reply has no program.

    Args:
        text: the reply.
        function: what the program is to define.
    """
    parsed = parse_reply(text, function)
    return None if parsed.code is None else (parsed.code.rstrip("\n"), parsed.idea or NO_IDEA)
