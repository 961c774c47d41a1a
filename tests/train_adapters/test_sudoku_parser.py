"""Moves found in replies of every sort, as published and strictly."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_adapters.sudoku.parser import parse_move
from train_adapters.sudoku.rules import PUBLISHED, STRICT, Move, rules_named

Found = tuple[int, int, int] | None


def found(move: Move | None) -> Found:
    return None if move is None else (move.row, move.column, move.value)


COMMANDS: list[tuple[str, Found]] = [
    ("set 1 2 3", (1, 2, 3)),
    ("  SET 1, 2, 3.", (1, 2, 3)),
    ("`fill 1 2 3`", (1, 2, 3)),
    ("**place 1 2 3**", (1, 2, 3)),
    ("Action: set 1 2 3", (1, 2, 3)),
    ("set: 1 2 3", (1, 2, 3)),
    ("set r1 c2 3", (1, 2, 3)),
    ("set r1c2 = 3", (1, 2, 3)),
    ("set R1C2: 3", (1, 2, 3)),
    ("I am sure about this one.\nset 4 5 6\n", (4, 5, 6)),
    ("```\nset 4 5 6\n```", (4, 5, 6)),
    ("set 4 5 6\nset 7 8 9", (4, 5, 6)),
    ("set 4 5 6\r\nset 7 8 9", (4, 5, 6)),
    ('{"row": 1, "col": 2, "value": 3}', (1, 2, 3)),
    ('{"r": 1, "c": 2, "v": 3}', (1, 2, 3)),
    ('{"row": "1", "col": 2.0, "v": "3"}', (1, 2, 3)),
    ('Sure!\n```json\n{"row": 1,\n "col": 2, "value": 3}\n```\nset 4 5 6', (1, 2, 3)),
    ('{"row": 0, "col": 12, "value": -3}', (0, 12, -3)),
    ('{"row": "１", "col": 2, "value": 3}', (1, 2, 3)),
    ("{}\nset 4 5 6\nset 7 8 9", (4, 5, 6)),
    ("no digits at all", None),
    ("", None),
    ("\n\n\n", None),
    ("set 1 2", None),
    ("set １ ２ ３", None),
    ("set ١ ٢ ٣", None),
    ("set ² ³ ¹", None),
    ("set 10 20 30", None),
    ('{"row": 1, "col": 2}', None),
]
"""Replies that both rules read alike."""

PROSE: list[tuple[str, Found]] = [
    ("1 2 3", (1, 2, 3)),
    ("r1c2 3", (1, 2, 3)),
    ("r1c2 cannot be 3", (1, 2, 3)),
    ("The first 4 cells and 5 rows leave 6.", (4, 5, 6)),
    ("I set three cells: 4, 5 and 6, but not 7.", (4, 5, 6)),
    ("Step 1: set 2 3 4", (1, 2, 3)),
    ("set 0 1 2 3", (1, 2, 3)),
    ("set 1 2 -3", (1, 2, 3)),
    ("<think>Row 1, column 2 holds 3.</think>", (1, 2, 3)),
    ("<think>Row 1, column 2 holds 3.", (1, 2, 3)),
    ("[1, 2, 3]", (1, 2, 3)),
    ('{"row": 1, "col": 2, "digit": 3}', (1, 2, 3)),
    ('{"row": null, "col": 2, "value": 3} 4', (2, 3, 4)),
    ('{"row": 1, "col": 2, "value": 3', (1, 2, 3)),
]
"""Replies from which only the published rules read a move."""


@pytest.mark.parametrize(("reply", "move"), COMMANDS)
def test_commands(reply: str, move: Found) -> None:
    """Else an agent that answers as it was asked to is not understood, under one of the rules or both."""
    assert found(parse_move(reply, PUBLISHED)) == move
    assert found(parse_move(reply, STRICT)) == move


@pytest.mark.parametrize(("reply", "move"), PROSE)
def test_prose(reply: str, move: Found) -> None:
    """Else results under the published rules differ from the published ones, or the hole in them stays open."""
    assert found(parse_move(reply, PUBLISHED)) == move
    assert parse_move(reply, STRICT) is None


def test_a_command_after_prose() -> None:
    """Else the strict rules would lose moves that are stated as they should be, because of the talk before them."""
    reply = "I set out with 4 candidates for 5 cells of box 6.\nset 7 8 9"
    assert found(parse_move(reply, PUBLISHED)) == (4, 5, 6)
    assert found(parse_move(reply, STRICT)) == (7, 8, 9)


def test_lines_with_a_keyword_come_first() -> None:
    """Else a reply that thinks aloud and then gives its move is read at its first digits."""
    reply = "Row 1 lacks 2 and 3.\nSo I place 4 at 5 6\nset 7 8 9"
    assert found(parse_move(reply, PUBLISHED)) == (4, 5, 6)


@pytest.mark.parametrize(
    "reply",
    [
        "{" * 100_000,
        "{" * 50_000 + "}" * 50_000,
        '{"row":' + "[" * 50_000 + "}",
        '{"row": ' + "9" * 100_000 + ', "col": 1, "value": 1}',
        '{"row": "' + "9" * 100_000 + '", "col": 1, "value": 1}',
        '{"row": Infinity, "col": 1, "value": 1}',
        '{"row": NaN, "col": 1, "value": 1}',
        '{"row": [], "col": {, "value": 1}',
        "set " * 25_000,
        "set\n" * 25_000,
        "r" + " " * 100_000,
        "r 1 c 2" + " " * 100_000,
        "set" + " " * 100_000 + "x",
        "`" * 100_000,
        "thinking " * 12_000,
        "\ud800" * 100,
        "\x00",
        "\u2028set １ 2 3",
    ],
    ids=lambda reply: repr(reply[:12]),
)
@pytest.mark.parametrize("rules", ["published", "strict"])
def test_long_and_odd_replies(reply: str, rules: str) -> None:
    """Else one reply that runs wild, as those of perturbed weights do, stops the training or holds it up for hours."""
    assert parse_move(reply, rules_named(rules)) is None


def test_a_long_reply_with_many_moves() -> None:
    """Else the last move of a reply that repeats itself would count, or none."""
    reply = "".join(f"set {index % 9 + 1} 1 1\n" for index in range(10_000))
    assert found(parse_move(reply, PUBLISHED)) == found(parse_move(reply, STRICT)) == (1, 1, 1)


def test_a_long_reply_with_many_names_of_cells() -> None:
    """Else the search begins anew at every name, and takes hours for a reply that lists cells."""
    reply = "r1c1 " * 20_000
    assert parse_move(reply, PUBLISHED) is None
    assert found(parse_move(reply + "is 5", PUBLISHED)) == (1, 1, 5)


PIECES = [
    "set",
    "fill",
    "place",
    "action",
    ":",
    "=",
    "r1",
    "c2",
    "r3c4",
    "{",
    "}",
    '"row"',
    '"col"',
    '"value"',
    "1",
    "2",
]
PIECES += ["3", "9", "0", "10", "１", "٣", "\n", " ", ",", ".", "`", "-", "*", "<think>", "not", '{"r":1,"c":2,"v":3}']
replies = st.text() | st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
replies |= st.lists(st.sampled_from([*PIECES, "set 1 2 3", "\nset r1c2 4\n", "\nset 5 6 7\n"]), max_size=8).map("".join)


@settings(max_examples=200, deadline=None)
@given(reply=replies)
def test_any_reply(reply: str) -> None:
    """Else some reply raises an error and counts as a failure of the machine, not of the agent."""
    for rules in (PUBLISHED, STRICT):
        move = parse_move(reply, rules)
        assert move is None or all(type(number) is int for number in (move.row, move.column, move.value))


@settings(max_examples=300, deadline=None)
@given(reply=replies)
def test_the_rules_differ_in_prose_only(reply: str) -> None:
    """Else an experiment under the strict rules would change more than the hole that it is about."""
    published, strict = parse_move(reply, PUBLISHED), parse_move(reply, STRICT)
    if published != strict:
        assert published is not None
        assert not is_plain(source_line(reply))
    if strict is None:
        assert not any(is_plain(line) for line in reply.splitlines())


def source_line(reply: str) -> str:
    """The line that the published rules take their move from; the whole reply when no line with a keyword has one."""
    lines = [line for line in reply.splitlines() if re.search(r"\b(set|fill|place|action)\b", line, re.IGNORECASE)]
    return next((line for line in lines if parse_move(line.replace("{", " "), PUBLISHED)), reply)


def is_plain(text: str) -> bool:
    """Whether a text is the command that the prompt asks for, and nothing else."""
    return re.fullmatch(r"set [1-9] [1-9] [1-9]|set r[1-9]c[1-9] [1-9]", text.strip(" `")) is not None
