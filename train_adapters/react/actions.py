"""Actions in the text of a reply, in the forms that models write.

The form that is asked for is `Action: {"name": "bash", "command": "..."}`. Also read: JSON in a code fence, with raw
line breaks or wrong escapes, in single or curly quotes, with quotes in the command that are not escaped, not closed, or
without the word before it; the arguments in an object of their own, as in tool calls of chat templates; the tool's name
before the JSON; a fence of shell commands after the word; and tags (`<function=bash><parameter=command>`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHELL = "bash"

_COLON = "[:\uff1a]"
_MOST_PLACES = 20
"""Places of one reply that are looked at: more of them are no attempt at an action."""

_PLACE = re.compile(
    rf"""
    ^[ \t>*_\#`\-]*action(?:[ \t]+input)?[ \t*_`]*{_COLON}(?P<word>[ \t*_`]*)
    | (?P<object>\{{\s*["'“]?(?:name|tool|command|cmd)["'”]?\s*{_COLON})
    | <function=(?P<tag>\w+)>\s*<parameter=(?:command|cmd)>(?P<tagged>.*?)(?:</parameter>|</function>|\Z)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_TO_OBJECT = re.compile(r"\s{0,9}(?P<tool>\w{1,40})?[\s(:\uff1a`*]{0,9}(?:```\w{0,9})?\s{0,9}(?=\{)")
_FENCE = re.compile(r"\s{0,9}(?:\w{1,40}\s{0,9})?```(?:bash|sh|shell)[ \t]*\n(?P<command>.*?)(?:```|\Z)", re.DOTALL)
_NEXT = re.compile(rf"^[ \t>*_\#`\-]*(?:action|final answer|answer|thought)[ \t*_`]*{_COLON}", re.I | re.M)

_NAME_KEY = re.compile(rf"""["'“]?\b(?:name|tool)["'”]?\s*{_COLON}\s*["'“](?P<value>[^"'”\n]{{0,60}})["'”]""")
_COMMAND_KEY = re.compile(rf"""["'“]?\b(?:command|cmd)["'”]?\s*{_COLON}\s*(?P<quote>\"\"\"|'''|["'“`])""")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/", "\n": "\n"}


@dataclass(frozen=True)
class Call:
    """A tool to be called.

    Attributes:
        tool: its name.
        command: for it; may be empty.
    """

    tool: str
    command: str


def first_call(text: str) -> Call | None:
    """The first action that can be read; None where there is none."""
    for number, place in enumerate(_PLACE.finditer(text)):
        if number == _MOST_PLACES:
            return None
        if call := _call_at(text, place):
            return call
    return None


def _call_at(text: str, place: re.Match[str]) -> Call | None:
    if place["tag"]:
        return Call(place["tag"], place["tagged"].strip("\n"))
    if place["object"]:
        return _from_object(text, place.start("object"), marked=False)
    if fence := _FENCE.match(text, place.end()):
        return Call(SHELL, fence["command"].strip("\n"))
    if before := _TO_OBJECT.match(text, place.end()):
        return _from_object(text, before.end(), marked=True, tool=before["tool"] or SHELL)
    return None


def _from_object(text: str, start: int, *, marked: bool, tool: str = SHELL) -> Call | None:
    """The call in the object that begins there.

    Args:
        text: of the reply.
        start: of the object.
        marked: whether it is announced as an action; then it is one even without a command.
        tool: where it names none.
    """
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return _relaxed(text, start, marked=marked, tool=tool)
    return _from_value(value, marked=marked, tool=tool) if isinstance(value, dict) else None


def _from_value(value: Mapping[str, Any], *, marked: bool, tool: str) -> Call | None:
    named = value.get("name", value.get("tool"))
    inner = value.get("arguments", value.get("parameters", value))
    if isinstance(inner, str):
        inner = {"command": inner}
    command = inner.get("command", inner.get("cmd")) if isinstance(inner, dict) else None
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if command is None and not (marked and named):
        return None
    return Call(str(named or tool).strip(), "" if command is None else str(command))


def _relaxed(text: str, start: int, *, marked: bool, tool: str) -> Call | None:
    """The call in something that is nearly JSON: it ends where the next part of the reply begins, at the latest."""
    following = _NEXT.search(text, start)
    region = text[start : following.start() if following else len(text)]
    command = _COMMAND_KEY.search(region)
    before = region[: command.start()] if command else region
    value, after = ("", "") if command is None else _quoted(region[command.end() :], command["quote"])
    name = _NAME_KEY.search(before) or _NAME_KEY.search(after)
    if command is None and not (marked and name):
        return None
    return Call(name["value"].strip() if name else tool, _unescaped(value))


def _quoted(text: str, quote: str) -> tuple[str, str]:
    """A value up to its closing quote, and what follows.

    Quotes inside that are not escaped make the closing one uncertain: it is the last that the end of an object follows,
    else the last before another key, else one at the very end. A value that nothing closes goes to the end of the text.
    """
    closing = re.escape("”" if quote == "“" else quote)
    for follows in (r"\s*(?:,\s*)?\}", r"""\s*,\s*["'“]?\w+["'”]?\s*:""", r"\s*(?:```\s*)?\Z"):
        ends = [found.start() for found in re.finditer(closing + f"(?={follows})", text)]
        end = next((place for place in reversed(ends) if not _is_escaped(text, place)), None)
        if end is not None:
            return text[:end], text[end:]
    return _without_ends(text), ""


def _without_ends(text: str) -> str:
    """A text without what closes a fence, a tag or an object at its end."""
    for end in ("```", "</tool_call>", "}"):
        text = text.rstrip().removesuffix(end)
    return text.rstrip()


def _is_escaped(text: str, place: int) -> bool:
    before = text[:place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    """JSON's escapes resolved; a backslash before anything else is kept, as it is meant for the command."""

    def resolve(found: re.Match[str]) -> str:
        code = found[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPED.get(code, found[0])

    return _ESCAPE.sub(resolve, text)
