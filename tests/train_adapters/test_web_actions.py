"""The parser of the agent's actions: what it reads, what it refuses, and that nothing a model writes makes it fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_adapters.webarena.actions import ACTIONS, ELEMENT_ACTIONS, Action, parse_action

SHAPES = {
    'do(action="Click", element="12")': Action("Click", "12"),
    "do(action='Click', element='12')": Action("Click", "12"),
    "do(action=Click, element=12)": Action("Click", "12"),
    'Do(Action="click", Element="12")': Action("Click", "12"),
    'do("Click", "12")': Action("Click", "12"),
    'do(action="Click", element="[12]")': Action("Click", "12"),
    'do(action="Click", element="#12")': Action("Click", "12"),
    'do(action="Click", element="<a id="12">Cart</a>")': Action("Click", "12"),
    'do(action="Click", element="a12")': Action("Click", "a12"),
    'do(action="Click", element="<id>12")': Action("Click", "12"),
    'do(action="Click", element="<id>12</id>")': Action("Click", "12"),
    'do(element="12", action="Click")': Action("Click", "12"),
    "do ( action = “Click” , element = “12” )": Action("Click", "12"),
    'do(action: "Click", element: "12")': Action("Click", "12"),
    'do(action="Right Click", element="12")': Action("Right Click", "12"),
    'do(action="right_click", element="12")': Action("Right Click", "12"),
    'do(action="Type", element="12", argument="hello")': Action("Type", "12", "hello"),
    'do(action="Type", element="12", text="hello")': Action("Type", "12", "hello"),
    "do('Type', 12, 'hello')": Action("Type", "12", "hello"),
    'do(action="Type", element="12", argument="a (b), c")': Action("Type", "12", "a (b), c"),
    'do(action="Type", element="12", argument="it\'s")': Action("Type", "12", "it's"),
    'do(action="Type", element="12", argument="say \\"hi\\" now")': Action("Type", "12", 'say "hi" now'),
    'do(action="Type", element="12", argument="say "hi" now")': Action("Type", "12", 'say "hi" now'),
    'do(action="Type", element="12", argument="")': Action("Type", "12", ""),
    'do(action="Type", element="12", argument="unclosed': Action("Type", "12", "unclosed"),
    'do(action="Search", element="3", argument="red mug")': Action("Search", "3", "red mug"),
    'do(action="Select Dropdown Option", element="7", argument="Price")': Action(
        "Select Dropdown Option", "7", "Price"
    ),
    'do(action="Hover", element="9")': Action("Hover", "9"),
    'do(action="Scroll Down")': Action("Scroll Down"),
    'do(action="scroll up")': Action("Scroll Up"),
    'do(action="Press Enter")': Action("Press Enter"),
    'do(action="Press Enter", element="4")': Action("Press Enter", "4"),
    'do(action="Wait")': Action("Wait"),
    "do(Scroll Down)": Action("Scroll Down"),
    "go_backward()": Action("go_backward"),
    "go_back()": Action("go_backward"),
    "Go_Forward( )": Action("go_forward"),
    'exit(message="42")': Action("exit", argument="42"),
    'exit("42")': Action("exit", argument="42"),
    "exit()": Action("exit"),
    'exit(message="")': Action("exit"),
    'exit(message="It costs $5 (incl. tax).")': Action("exit", argument="It costs $5 (incl. tax)."),
    'exit(message=["a", "b (c)"])': Action("exit", argument='["a", "b (c)"]'),
    'exit(message={"a": [1]})': Action("exit", argument='{"a": [1]}'),
    'exit(message="[1, 2]")': Action("exit", argument="[1, 2]"),
    '```\ndo(action="Click", element="12")\n```': Action("Click", "12"),
    'I will click it.\ndo(action="Click", element="12")': Action("Click", "12"),
    'do(action="Click", element="1")\ndo(action="Click", element="2")': Action("Click", "1"),
    '<think>do(action="Click", element="1")</think>exit(message="2")': Action("exit", argument="2"),
    'do(action="Fly", element="1")\ndo(action="Click", element="2")': Action("Click", "2"),
}

NONE = (
    "",
    "I do not know.",
    "Click 12",
    "do()",
    'do(action="Fly", element="12")',
    'do(action="Click")',
    'do(action="Click", element="the cart")',
    'redo(action="Click", element="12")',
    'os.exit(message="x")',
    '<think>do(action="Click", element="1")',
)


@pytest.mark.parametrize(("reply", "action"), SHAPES.items())
def test_a_shape_is_read(reply: str, action: Action) -> None:
    """Models write calls in many ways; a turn would be spent on each one that is not read."""
    assert parse_action(reply) == action


@pytest.mark.parametrize("reply", NONE)
def test_no_action_is_made_up(reply: str) -> None:
    """What is no action must not become one: it would click where the agent never asked for it."""
    assert parse_action(reply) is None


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\"'\\“”‘’，（）＝<"))


@given(st.sampled_from(ACTIONS), st.from_regex(r"[a-z]?[1-9]\d{0,4}", fullmatch=True), _TEXT)
def test_what_the_agent_is_told_to_write_is_read(name: str, element: str, text: str) -> None:
    """The history in the prompt shows actions as they are to be written: copying one from there must do the same."""
    action = Action(name, element if name in ELEMENT_ACTIONS else "", text if name in ("Type", "Search") else "")
    assert parse_action(str(action)) == action


@given(st.text())
def test_any_text_can_be_read(reply: str) -> None:
    """A parser that raises would count as a failure of ours, and the episode would be left out."""
    parse_action(reply)
    parse_action(f"do({reply}")


def test_long_replies_take_no_time() -> None:
    """A reply of 100 kB without an end must not hold up the other episodes; it is read up to a limit."""
    assert parse_action('do(action="Type", element="1", argument="' + '"' * 100_000) is not None
    assert parse_action("do(" * 50_000) is None
    assert parse_action("<think>" * 20_000) is None
    assert parse_action("exit(message=" + "[" * 50_000) is not None
