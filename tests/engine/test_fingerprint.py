"""Two spellings of one heuristic share a fingerprint; two heuristics never do."""

from __future__ import annotations

import builtins
import keyword
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.engine.fingerprint import _INTROSPECTION, fingerprint

CODE = '''import math
import numpy as np


def {helper}({p}, {q}=2):
    """{doc}"""
    {r} = [{s} * {q} for {s} in {p} if {s} > 0]{comment}
    return sum({r})


def select({p}: np.ndarray, {t}: float = 1.0) -> int:
    """{doc}"""
    {comment}
    def {u}({v}):
        nonlocal {w}
        {w} += {v}
        return lambda {s}: {s} + {w}

    {w}: float = math.sqrt({t})
    for {r} in range(3):
        {w} = {u}({r})({helper}({p}, 2 + {r}))
    try:
        return int(np.argmin({p} - {w}))
    except ValueError as {s}:
        return 0
'''
SLOTS = sorted(set(re.findall(r"\{(\w+)\}", CODE)) - {"doc", "comment"})
PLAIN = {name: name * 2 for name in SLOTS} | {"doc": "", "comment": ""}
TAKEN = {"select", "math", "np", *dir(builtins), *keyword.kwlist, *_INTROSPECTION}
NAMES = st.from_regex(r"[a-z][a-z_]{0,6}", fullmatch=True).filter(lambda name: name not in TAKEN)
BASE = fingerprint(CODE.format(**PLAIN), "select")


def _same(first: str, second: str) -> bool:
    return fingerprint(first, "select") == fingerprint(second, "select")


@given(
    st.lists(NAMES, min_size=len(SLOTS), max_size=len(SLOTS), unique=True),
    st.text("abc .", max_size=9),
    st.sampled_from(["", "  # note", "  # {}"]),
)
def test_names_comments_and_docstrings_do_not_matter(names: list[str], doc: str, comment: str) -> None:
    """A model that only renames its variables would be paid for a new heuristic."""
    slots = dict(zip(SLOTS, names, strict=True))
    assert fingerprint(CODE.format(**slots, doc=doc, comment=comment), "select") == BASE


CHANGES = [
    ("> 0", "> 1"),
    ("> 0", ">= 0"),
    (" * ", " + "),
    ("argmin", "argmax"),
    ("sum", "max"),
    ("range(3)", "range(4)"),
]
CHANGES += [
    ("2 + {r}", "{r} + 2"),
    ("+= {v}", "-= {v}"),
    ("math.sqrt", "math.log"),
    ("{s} + {w}", "{w} + {w}"),
    ("=2", "=3"),
]


@given(st.lists(st.sampled_from(CHANGES), min_size=1, unique=True))
def test_any_change_of_the_computation_matters(changes: list[tuple[str, str]]) -> None:
    """A better heuristic would be thrown away as a copy of its parent."""
    code = CODE
    for old, new in changes:
        code = code.replace(old, new)
    assert fingerprint(code.format(**PLAIN), "select") != BASE


F = "def select(a):\n    return a\n"
SAME = [
    (
        "an import alias",
        "import numpy as np\ndef select(a):\n    return np.sum(a)",
        "import numpy\ndef select(b):\n    return numpy.sum(b)",
    ),
    (
        "the order of imports",
        "import math, random\n" + F + "X = math.e, random",
        "import random\nimport math\n" + F + "X = math.e, random",
    ),
    ("an unused import", "import math\nfrom typing import List\n" + F, F),
    ("an unused function", "def old(x):\n    return 1\n" + F, F),
    ("a version suffix", "def select_v2(a):\n    return a", F),
    (
        "annotations",
        "from typing import List\ndef select(a: List[int], *, b: int | None = None) -> int:\n    c: int = 1",
        "def select(x, *, y=None):\n    z = 1",
    ),
    (
        "a name shared with the iterable",
        "def select(a):\n    return [a for a in a]",
        "def select(a):\n    return [b for b in a]",
    ),
    (
        "a walrus",
        "def select(a):\n    return [y for x in a if (y := x)], y",
        "def select(b):\n    return [q for p in b if (q := p)], q",
    ),
    (
        "match captures",
        "def select(a):\n    match a:\n        case [x, *y]:\n            return x, y",
        "def select(a):\n    match a:\n        case [p, *q]:\n            return p, q",
    ),
    (
        "a local import",
        "def select(a):\n    import math as m\n    return m.e",
        "def select(a):\n    import math\n    return math.e",
    ),
    ("trailing blanks of broken code", "def select(a:  \n\n", "def select(a:"),
]


@pytest.mark.parametrize(("what", "first", "second"), SAME, ids=[case[0] for case in SAME])
def test_same_behaviour_is_one_candidate(what: str, first: str, second: str) -> None:
    """Copies would fill the population."""
    assert _same(first, second), what


DIFFERENT = [
    ("a global and a local", "x = 1\ndef select(a):\n    global x\n    x = a", "x = 1\ndef select(a):\n    x = a"),
    (
        "a closure and a local",
        "def select(a):\n    b = 1\n    def f():\n        nonlocal b\n        b = 2\n    f()\n    return b",
        "def select(a):\n    b = 1\n    def f():\n        b = 2\n    f()\n    return b",
    ),
    ("an unknown name and a local", "def select(a):\n    return b", "def select(a):\n    return a"),
    ("names seen by locals()", "def select(a):\n    return locals()", "def select(b):\n    return locals()"),
    ("names seen by eval", "def select(a):\n    return eval('a')", "def select(b):\n    return eval('a')"),
    ("names printed by an f-string", "def select(a):\n    return f'{a=}'", "def select(b):\n    return f'{b=}'"),
    (
        "a docstring that is read",
        'def select(a):\n    """x"""\n    return select.__doc__',
        'def select(a):\n    """y"""\n    return select.__doc__',
    ),
    (
        "a parameter called by name",
        "def h(x, y):\n    return x - y\ndef select(a):\n    return h(y=a, x=1)",
        "def h(y, x):\n    return y - x\ndef select(a):\n    return h(y=a, x=1)",
    ),
    (
        "a parameter called through a dict",
        "def h(x):\n    return x\ndef select(a):\n    return h(**{'x': a})",
        "def h(y):\n    return y\ndef select(a):\n    return h(**{'x': a})",
    ),
    ("an annotation that fails", "def select(a: List[int]):\n    return a", F),
    ("an import that fails", "import no_such_module\n" + F, F),
    ("a name that does not exist in typing", "from typing import Lost\n" + F, F),
    ("an import that comes too late", "def select(a: np.ndarray):\n    return a\nimport numpy as np", F),
    (
        "two helpers swapped",
        "def f(x):\n    return 1\ndef g(x):\n    return 2\ndef select(a):\n    return f(g(a))",
        "def f(x):\n    return 2\ndef g(x):\n    return 1\ndef select(a):\n    return f(g(a))",
    ),
    (
        "a helper that hides a builtin",
        "X = sum([1])\ndef sum(a):\n    return 1\ndef select(a):\n    return sum(a)",
        "X = add([1])\ndef add(a):\n    return 1\ndef select(a):\n    return add(a)",
    ),
    ("a dataclass field", "@d\nclass A:\n    x: int = 1\n" + F, "@d\nclass A:\n    x = 1\n" + F),
    ("a class attribute", "class A:\n    x = 1\n" + F, "class A:\n    y = 1\n" + F),
    ("int and float", "def select(a):\n    return 1", "def select(a):\n    return 1.0"),
    ("two kinds of broken code", "def select(a:", "def select(b:"),
]


@pytest.mark.parametrize(("what", "first", "second"), DIFFERENT, ids=[case[0] for case in DIFFERENT])
def test_different_behaviour_is_two_candidates(what: str, first: str, second: str) -> None:
    """A working heuristic would inherit the failure or the score of another one."""
    assert not _same(first, second), what


@pytest.mark.parametrize(
    "code", ["", "\0", "\ud800", "-" * 9000 + "1", "(" * 999, "x = 0x" + "f" * 9999, "a" + ".b" * 9999]
)
def test_any_text_has_a_fingerprint(code: str) -> None:
    """One strange candidate would end a run of hours."""
    assert len(fingerprint(code, "select")) == 64
