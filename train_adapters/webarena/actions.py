"""The agent's actions, and the one parser that finds them in a reply.

An action is a call on a line of its own: `do(action="Click", element="12")`, `do(action="Type", element="12",
argument="text")`, `go_backward()`, `go_forward()`, `exit(message="...")`. The parser is tolerant in how a call is
written (quotes of any kind or none, positions instead of names, other cases, fences, an unclosed end, the element as
`[12]`, `#12` or a piece of HTML) and strict in what it says: an action that is not one of `ACTIONS` is none. The first
call that can be read counts; thoughts between <think> and </think> are not searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

ELEMENT_ACTIONS = ("Click", "Right Click", "Type", "Search", "Hover", "Select Dropdown Option")
"""They need an element."""
PAGE_ACTIONS = ("Scroll Up", "Scroll Down", "Press Enter", "Wait")
"""They take none; Press Enter may have one."""
ACTIONS = ELEMENT_ACTIONS + PAGE_ACTIONS
BACKWARD, FORWARD, EXIT = "go_backward", "go_forward", "exit"

_WITH_ARGUMENT = ("Type", "Search", "Select Dropdown Option")
_LONGEST = 20_000
"""Characters of a reply that are read; an action stands nowhere near as deep."""
_MOST_CALLS = 50


@dataclass(frozen=True)
class Action:
    """One action.

    Attributes:
        name: one of `ACTIONS`, `go_backward`, `go_forward` or `exit`.
        element: id of the element; empty where it has none.
        argument: text to enter, option to select, or the message of `exit`.
    """

    name: str
    element: str = ""
    argument: str = ""

    def __str__(self) -> str:
        """The call as the agent is told to write it."""
        if self.name == EXIT:
            return f'exit(message="{self.argument}")'
        if self.name not in ACTIONS:
            return f"{self.name}()"
        parts = [f'action="{self.name}"']
        parts += [f'element="{self.element}"'] if self.element else []
        parts += [f'argument="{self.argument}"'] if self.name in _WITH_ARGUMENT else []
        return f"do({', '.join(parts)})"


def parse_action(reply: str) -> Action | None:
    """The first action of a reply; None where it has none."""
    text = re.sub(r"<think>.*?(</think>|\Z)", " ", reply[:_LONGEST], flags=re.DOTALL).translate(_PLAIN)
    for call in islice(_CALL.finditer(text), _MOST_CALLS):
        action = _action(call[1].lower(), list(_arguments(text, call.end())))
        if action is not None:
            return action
    return None


_CALL = re.compile(r"(?<![\w.])(do|go_backward|go_forward|go_back|exit)\s*\(", re.IGNORECASE)
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "（": "(", "）": ")", "，": ",", "＝": "="})
_NAME = re.compile(r"\s*(\w+)\s*[=:]\s*")
_BARE = re.compile(r"[^,)\n]*")
_NAMES = {name.lower().replace(" ", ""): name for name in ACTIONS}


def _action(kind: str, arguments: list[tuple[str, str]]) -> Action | None:
    """The action of a call, from its arguments by name; those without one have an empty name."""
    if kind in ("go_backward", "go_back"):
        return Action(BACKWARD)
    if kind == "go_forward":
        return Action(FORWARD)
    named = {name: value for name, value in arguments if name}
    positions = iter([value for name, value in arguments if not name])
    if kind == "exit":
        return Action(EXIT, argument=named.get("message", next(positions, "")).strip())
    name = _NAMES.get(re.sub(r"[\s_-]", "", named.get("action") or next(positions, "")).lower())
    if name is None:
        return None
    element = _element(named.get("element") or named.get("id") or (next(positions, "") if _takes_element(name) else ""))
    if name in ELEMENT_ACTIONS and not element:
        return None
    argument = named.get("argument", named.get("text", named.get("value", next(positions, ""))))
    return Action(name, element if _takes_element(name) else "", argument if name in _WITH_ARGUMENT else "")


def _takes_element(name: str) -> bool:
    return name in ELEMENT_ACTIONS or name == "Press Enter"


def _element(text: str) -> str:
    """The id in what was given for the element: `12`, `a12` in a frame, `[12]`, `#12`, `<id>12</id>`, `<a id="12">`."""
    inside = re.search(r"\bid\s*=\s*[\"']?([A-Za-z]*\d+)", text)
    alone = re.fullmatch(r"\W*(?:id\b\W*)?([A-Za-z]{0,6}\d{1,7})\W*(?:/?id\W*)?", text)
    found = inside or alone
    return found[1] if found else ""


def _arguments(text: str, place: int) -> Iterator[tuple[str, str]]:
    """The arguments of a call, from behind its opening bracket to its closing one, or to the end of the text."""
    while place < len(text) and text[place] != ")":
        name = _NAME.match(text, place)
        start = name.end() if name else place + len(text[place:]) - len(text[place:].lstrip())
        if text[start : start + 1] in ("'", '"'):
            value, place = _quoted(text, start)
        elif (listed := _listed(text, start)) is not None:
            value, place = text[start:listed], listed
        else:
            bare = _BARE.match(text, start)
            assert bare is not None
            value, place = bare[0].strip(), bare.end()
            if text[place : place + 1] == "\n":
                yield (name[1].lower() if name else "", value)
                return
        if value or name:
            yield (name[1].lower() if name else "", value)
        place = _behind_comma(text, place)


def _listed(text: str, start: int) -> int | None:
    """The place behind a list or an object in JSON; None where there is none."""
    if text[start : start + 1] not in ("[", "{"):
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _quoted(text: str, start: int) -> tuple[str, int]:
    """A quoted value and the place behind it.

    A quote ends the value only where the call can go on or end behind it, so that quotes within it need no backslash.
    """
    quote = text[start]
    for end in range(start + 1, len(text)):
        if text[end] == quote and text[end - 1] != "\\" and _ENDS.match(text, end + 1):
            return _unescaped(text[start + 1 : end]), end + 1
    line = text[start + 1 :].split("\n", 1)[0]
    return _unescaped(line.rstrip(" )\"'")), len(text)


_ENDS = re.compile(r"\s*(\)\s*(\n|\Z|[`#.;<])|,\s*\w+\s*[=:]|,\s*[\"']|,\s*\W?\w*\d\W?\s*[,)]|\)?\s*\Z|\))")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\"'\\])", r"\1", text).replace("\\n", "\n")


def _behind_comma(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    return place
