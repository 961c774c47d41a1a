"""Finds the move in what the model wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from train_adapters.sudoku.rules import Move, Rules

_KEYWORD = re.compile(r"\b(?:set|fill|place|action)\b", re.IGNORECASE)
_CELL = re.compile(r"\br\s*([1-9])\s*c\s*([1-9])\b\D*([1-9])\b", re.IGNORECASE)
_DIGIT = re.compile(r"\b[1-9]\b")
_COMMAND = re.compile(
    r"[\s`*>-]*(?:action[\s:]*)?\b(?:set|fill|place)[\s:]+"
    r"(?:r\s*([1-9])\s*c\s*([1-9])\b[\s:,=]*|([1-9])[\s:,]+([1-9])[\s:,]+)([1-9])[\s`*.;]*",
    re.IGNORECASE,
)


def parse_move(reply: str, rules: Rules) -> Move | None:
    """The first move of a reply, or None; never raises, and takes time in proportion to the reply's length.

    Under both rules, the text from the first opening brace to the next closing one is tried first: a JSON object with
    `row`, `col` and `value` (or `r`, `c` and `v`), numbers or texts of numbers of any size.

    Published, when that fails: each line with one of the words set, fill, place and action is tried, in order, and then
    the whole reply. A text gives the move that it names as `r# c# #`, else its first three digits from 1 to 9 that
    stand alone. So prose gives moves too, reasoning included.

    Strict, when that fails: the first line that is nothing but a command, `set # # #` or `set r# c# #` (or fill, or
    place). Wherever published reads such a line, strict reads the same; from prose it reads nothing.

    Of several moves the first counts. Digits of other scripts are no digits, save in a text inside the JSON object.
    """
    move = _from_json(reply)
    if move is not None:
        return move
    return _from_prose(reply) if rules.reads_prose else _from_command(reply)


def _from_json(reply: str) -> Move | None:
    _, opened, after = reply.partition("{")
    inside, closed, _ = after.partition("}")
    if not (opened and closed):
        return None
    try:
        fields = json.loads(f"{{{inside}}}")
        row, column, value = (int(fields.get(name, fields.get(name[0]))) for name in ("row", "col", "value"))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return Move(row, column, value)


def _from_prose(reply: str) -> Move | None:
    for text in _texts(reply):
        cell = _CELL.search(text)
        if cell:
            return _move(cell.groups())
        digits = _DIGIT.findall(text)
        if len(digits) >= 3:
            return _move(digits[:3])
    return None


def _texts(reply: str) -> Iterator[str]:
    yield from (line for line in reply.splitlines() if _KEYWORD.search(line))
    yield reply


def _from_command(reply: str) -> Move | None:
    for line in reply.splitlines():
        command = _COMMAND.fullmatch(line)
        if command:
            return _move([digit for digit in command.groups() if digit])
    return None


def _move(digits: Iterable[str]) -> Move:
    return Move(*(int(digit) for digit in digits))
