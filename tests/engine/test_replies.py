"""Replies as small models write them: each case says what a user would lose if it were read wrongly."""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.engine.replies import parse_reply

GOOD = "def select(a, b):\n    return a + b\n"
OTHER = "def select(a, b):\n    return a - b\n"
TICKS = "```"


@dataclass(frozen=True)
class Case:
    """A reply, the value of select(2, 1) in its code, and its idea and note."""

    loss: str
    text: str
    value: int | None
    idea: str = ""
    note: str = "fence"


CASES = [
    Case("the plain form is not read", f"{{Add them.}}\n{TICKS}python\n{GOOD}{TICKS}\nDone.", 3, "Add them."),
    Case("a draft in the reasoning wins", f"<think>\n{TICKS}python\n{OTHER}{TICKS}</think>\n{TICKS}\n{GOOD}{TICKS}", 3),
    Case("a draft before a lone </think> wins", f"{TICKS}py\n{OTHER}{TICKS}\n</think>{TICKS}py\n{GOOD}{TICKS}", 3),
    Case("<Thought> is not known as reasoning", f"<Thought>{OTHER}</Thought>\n{GOOD}", 3, note="no fence"),
    Case("the draft wins over the final version", f"{TICKS}py\n{OTHER}{TICKS}\nBetter:\n{TICKS}py\n{GOOD}{TICKS}", 3),
    Case(
        "a later example block wins over the function",
        f"{TICKS}python\n{GOOD}{TICKS}\nUse:\n{TICKS}python\ndef demo():\n    select(1, 2)\n{TICKS}",
        3,
    ),
    Case("the install line is taken for code", f"{TICKS}python\n{GOOD}{TICKS}\n{TICKS}bash\npip install x\n{TICKS}", 3),
    Case("~~~ fences are not known", f"Here:\n~~~python\n{GOOD}~~~\nDone.", 3),
    Case("```Python is part of the code", f"{TICKS}Python\n{GOOD}{TICKS}", 3),
    Case("```python3 with attributes is part of the code", f'{TICKS}python3 title="a"\n{GOOD}{TICKS}', 3),
    Case("Windows line ends spoil the fences", f"{TICKS}python\n{GOOD}{TICKS}\n".replace("\n", "\r\n"), 3),
    Case(
        "code in a list item is refused",
        f"1. So:\n   {TICKS}python\n   {GOOD[:-5].replace(chr(10), chr(10) + '   ')}+ b\n   {TICKS}",
        3,
    ),
    Case(
        "a docstring with a code example ends the block",
        f'{TICKS}python\ndef select(a, b):\n    """Add.\n\n    {TICKS}python\n    select(1, 2)\n    {TICKS}\n    """\n'
        f"    return a + b\n{TICKS}\nThat is all.",
        3,
        "Add.",
    ),
    Case(
        "a docstring with a code example ends a block that is cut off",
        f'{TICKS}python\ndef select(a, b):\n    """Add.\n    {TICKS}\n    1\n    {TICKS}\n    """\n    return a + b\n(',
        3,
        "Add.",
        "unclosed fence, trimmed",
    ),
    Case("a missing closing fence loses the reply", f"{TICKS}python\n{GOOD}", 3, note="unclosed fence"),
    Case(
        "an example cut off by the token limit loses the reply",
        f"{TICKS}python\n{GOOD}\nfor i in range(3):\n    print(select(i,",
        3,
        note="unclosed fence, trimmed",
    ),
    Case(
        "prose after a prefilled function loses the reply",
        f"{TICKS}python\n{GOOD}\nThis function's idea is simple (it adds.\nIt's fast.",
        3,
        note="unclosed fence, trimmed",
    ),
    Case(
        "a text string that is never closed loses the function before it",
        f'{TICKS}python\n{GOOD}\n"""\nThis adds.',
        3,
        note="unclosed fence, trimmed",
    ),
    Case(
        "a torn try block loses the function before it",
        f"{TICKS}python\n{GOOD}\ntry:\n    x = 1\n    y = 2\n",
        3,
        note="unclosed fence, trimmed",
    ),
    Case(
        "a model that starts over after the prefill gives the torn first part",
        f'{TICKS}python\ndef select(a, b):\n    """{TICKS}python\n{GOOD}{TICKS}',
        3,
    ),
    Case("a fence closed on the last line of code is part of it", f"{TICKS}python\n{GOOD.strip()}{TICKS}", 3),
    Case(
        "prose around bare code is taken as code",
        f"I import numpy first.\nfrom here it is simple:\nimport numpy as np\n\n{GOOD}\nimport it and enjoy.",
        3,
        note="no fence, trimmed",
    ),
    Case("prose that starts with import is taken", f"import is easy here.\n{GOOD}", 3, note="no fence"),
    Case("code behind a lost opening fence is not found", f"{GOOD}{TICKS}\nIt adds.", 3, note="no fence"),
    Case(
        "tabs and spaces together are refused", f"{TICKS}\ndef select(a, b):\n\tif a:\n        return a + b\n{TICKS}", 3
    ),
    Case("a lambda is not seen as the function", f"{TICKS}python\nselect = lambda a, b: a + b\n{TICKS}", 3),
    Case(
        "a dict in the code is taken for the idea",
        f'{TICKS}python\ndef select(a, b):\n    """Sum up.\n\n    More."""\n    return {{1: a + b}}[1]\n{TICKS}',
        3,
        "Sum up.",
    ),
    Case("a subscript of a formula is the idea", f"x_{{ij}}: {{Add\n them.}}\n{TICKS}\n{GOOD}{TICKS}", 3, "Add them."),
    Case("an opening brace alone hides the idea", f"{{ but {{Add.}}\n{TICKS}\n{GOOD}{TICKS}", 3, "Add."),
    Case(
        "example calls run with the candidate",
        f"{TICKS}python\nBONUS = 0\n\n\n@staticmethod\n{GOOD}\nout = select(1, 2)\nprint(1 / 0)\n"
        f"if __name__ == '__main__':\n    exit()\n{TICKS}",
        3,
    ),
    Case(
        "a constant that the function reads is dropped with the example calls",
        f"{TICKS}python\nimport math\nONE = math.ceil(0.5); print(ONE)\n"
        f"def select(a, b):\n    return a + b * ONE\n{TICKS}",
        3,
    ),
    Case("a refusal is called code", "I'm sorry, but I cannot define such a function.", None, note="no code"),
    Case("an empty reply is called code", "", None, note="no code"),
    Case("an unfinished thought is called code", f"<think>\n{TICKS}python\n{GOOD}{TICKS}\n", None, note="no code"),
    Case("a shell script is called code", f"{TICKS}bash\n{GOOD}{TICKS}", None, note="no code"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.loss)
def test_reply_is_read_as_a_person_would(case: Case) -> None:
    """A reply that a person can read gives its code, its idea and how it was found."""
    reply = parse_reply(case.text, "select")
    assert (reply.idea, reply.note) == (case.idea, case.note)
    if case.value is None:
        assert reply.code is None
        return
    assert reply.code is not None
    namespace: dict[str, object] = {}
    exec(reply.code, namespace)
    select = namespace["select"]
    assert callable(select)
    assert select(2, 1) == case.value


def test_exact_name_wins_over_a_later_version() -> None:
    """A helper variant shown last would replace the function that was asked for."""
    text = f"{TICKS}python\n{GOOD}{TICKS}\n{TICKS}python\ndef select_v2(a, b):\n    return 0\n{TICKS}"
    assert parse_reply(text, "select").code == GOOD


def test_version_suffix_is_found() -> None:
    """A model that numbers its function would be counted as having written another one."""
    reply = parse_reply(
        f"{TICKS}python\ndef helper():\n    pass\n\n\ndef select_v2(a):\n    return a\n{TICKS}", "select"
    )
    assert reply.note == "fence"
    assert "select_v2" in (reply.code or "")


def test_method_is_not_passed_off_as_the_function() -> None:
    """A method taken out of its class would be called with the wrong arguments."""
    text = "class Solver:\n    def select(self, a):\n        return a\n"
    for reply in (parse_reply(f"{TICKS}python\n{text}{TICKS}", "select"), parse_reply(text, "select")):
        assert reply.code == text
        assert reply.note.endswith("other name")


@pytest.mark.parametrize("fenced", [True, False])
def test_broken_code_is_given_back(fenced: bool) -> None:
    """A syntax error would be recorded as a reply without code, or a torn function would run."""
    broken = "def select(a, b):\n    c = a +\n    return c\n"
    reply = parse_reply(f"{TICKS}python\n{broken}{TICKS}" if fenced else broken, "select")
    assert reply.code == broken
    assert reply.note.endswith("does not parse")


def test_comments_inside_functions_survive() -> None:
    """The next prompt would show the parent without its explanations."""
    body = "def select(a, b):\n    # add\n    return a + b  # sum\n"
    reply = parse_reply(f"{TICKS}python\n@cache\n{body}print(1)\n{TICKS}", "select")
    assert reply.code == f"@cache\n{body}"


def test_long_idea_is_cut() -> None:
    """One rambling model would fill every later prompt."""
    assert len(parse_reply(f"{{{'word ' * 500}}}\n{TICKS}\n{GOOD}{TICKS}", "select").idea) <= 300


PIECES = [
    "```",
    "```python\n",
    "~~~",
    "\n",
    "<think>",
    "</think>",
    "{",
    "}",
    '"""',
    "'",
    "def select(a):",
    "    ",
    "\t",
]
PIECES += [
    "return a",
    "try:\n",
    "import x",
    "class A:\n",
    "select = lambda",
    "\r",
    "\0",
    "\ud800",
    "(",
    "#",
    ";",
    "x = 1",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5))).map("".join), st.sampled_from(["select", "a("])
)
def test_never_raises(text: str, function: str) -> None:
    """One strange reply would end a run of hours; cleaning up may not break code that parses either."""
    reply = parse_reply(text, function)
    if reply.code is not None and "does not parse" not in reply.note:
        ast.parse(reply.code)


@pytest.mark.parametrize(
    "piece",
    [
        *("{", "`", "~", "```\n", "<think>", "x = 1;", " ", "-", "try:\n", "import a\n", "~~~\n", '```\n"""\n'),
        *("```python\ndef select(a):\n", 'def select(a):\n    """\n', "it's prose\n", "def select(a): return a\n"),
    ],
)
def test_a_million_characters_take_seconds(piece: str) -> None:
    """A model stuck in a loop would stall the search."""
    for text in (piece * (1_000_000 // len(piece)), f"{TICKS}python\n{GOOD}" + piece * (1_000_000 // len(piece))):
        started = time.process_time()
        parse_reply(text, "select")
        assert time.process_time() - started < 5
