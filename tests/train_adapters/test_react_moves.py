"""What replies ask for: the shapes of a table, and whatever else may come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reply_shapes import SHAPES, bash

from train_adapters.react import Call, Final, Move, parse_move
from train_adapters.react.moves import said


@pytest.mark.parametrize(("reply", "asked"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_shapes(reply: str, asked: Move | None) -> None:
    """Else a model that writes in this shape is never understood, and learns from noise."""
    assert parse_move(reply) == asked


def test_the_table_is_large() -> None:
    """Else shapes are lost from the table and nobody sees it."""
    assert len({reply for _, reply, _ in SHAPES}) == len({name for name, _, _ in SHAPES}) == len(SHAPES) >= 60


@pytest.mark.parametrize(
    "reply",
    [
        "{" * 100_000,
        '{"name": ' * 12_000,
        '{"command": "' * 8_000,
        'Action: {"name": "bash", "command": "' + "x" * 100_000,
        'Action: {"name": "bash", "command": "' + '"} ' * 33_000,
        'Action: {"name": "bash", "command": "' + "\\" * 100_000,
        "Action: " * 12_000,
        "Action:\n" * 12_000,
        "Answer: \n" * 12_000,
        "Final answer: {" * 7_000,
        "*" * 100_000 + "Action:",
        "the " * 25_000,
        "\n" * 100_000,
        "```bash\n" * 12_000,
        "<function=bash><parameter=command>" * 3_000,
        "<think>" * 14_000,
        "Observation" * 9_000,
        '"' * 100_000,
        "Action:" + " " * 100_000 + "x",
        'Action: {"name": "bash", "command": "' + " " * 100_000 + "x",
        'Action: {"name": "bash", "command": "' + "}" * 100_000,
        "answer" + " *" * 50_000,
    ],
    ids=range(22),
)
def test_100_kilobytes_of_anything_are_read(reply: str) -> None:
    """Else one reply ends the training, or holds it up for hours where the time grows with the square of the length."""
    move = parse_move(reply)
    assert move is None or isinstance(move, Call | Final)


@given(st.text(alphabet=st.sampled_from("Action: fnlswer{}\"'\\bhcmd\n`<>/:\uff1a“”$x1"), max_size=200))
def test_anything_is_read(reply: str) -> None:
    """Else a strange reply ends the training."""
    move = parse_move(reply)
    assert move is None or isinstance(move, Call | Final)


@given(st.text(max_size=80))
def test_any_command_in_the_form_that_is_asked_for_comes_through(command: str) -> None:
    """Else the tool runs another command than the model wrote."""
    for ascii_only in (True, False):
        action = json.dumps({"name": "bash", "command": command}, ensure_ascii=ascii_only)
        assert parse_move(f"I try this.\nAction: {action}") == bash(command)


def test_reasoning_and_invented_observations_are_not_said() -> None:
    """Else the next prompt repeats thousands of tokens of reasoning, or shows output that no tool ever put out."""
    reply = "<think>long</think>\n I look.\nAction: {}\nObservation: made up\nFinal answer: 4"
    assert said(reply) == "I look.\nAction: {}"
    assert said("We make an observation: it is odd.") == "We make an observation: it is odd."
