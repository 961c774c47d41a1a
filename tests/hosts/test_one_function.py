"""A program as the one function that LLM4AD keeps: it computes the same, and says so in few words."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from eoh_esopt.hosts.one_function import one_function

PREFACE = "import numpy as np\n"
PROGRAMS = {
    "plain": "import numpy as np\n\ndef f(a, b):\n    # weigh\n    return a + 2 * np.abs(b)\n",
    "import": "import math\n\ndef f(a, b):\n    return a + math.sqrt(b)\n",
    "from import": "from math import sqrt as root\nimport numpy\n\ndef f(a, b):\n    return root(b) + numpy.abs(a)\n",
    "helpers after": "def f(a, b):\n    return _g(a) + b\n\ndef _g(x):\n    return _h(x)\n\ndef _h(x):\n    return x",
    "constant": "WEIGHT = 7\n\ndef f(a, b):\n    return a + WEIGHT * b\n",
    "class": "class Scale:\n    by = 3\n\ndef f(a, b):\n    return Scale.by * a + b\n",
    "two spaces": "def f(a, b):\n  total = a\n  return total + b\n",
    "one line": "def f(a, b): return a - b\n",
    "decorated": "import functools\n\n@functools.lru_cache\ndef f(a, b):\n    return a * b\n",
    "docstring": 'def f(a, b):\n    """Add."""\n    return a + b\n',
    "docstring and helper": 'import math\n\ndef f(a, b):\n    """Add."""\n    return math.floor(a) + b\n',
    "twice": "def f(a, b):\n    return 0\n\ndef f(a, b):\n    return a + 5 * b\n",
    "text over lines": 'NOTE = """a\nb"""\n\ndef f(a, b):\n    return len(NOTE) * a + b\n',
    "future": "from __future__ import annotations\n\ndef f(a: Unknown, b):\n    return a + b\n".replace(
        "Unknown", "int"
    ),
    "named like an argument": "a = 3\n\ndef f(a, b):\n    return a + b\n",
}


def computed(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return names["f"](2.25, 4.0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_function_alone_computes_what_the_program_did(name: str) -> None:
    """Without it a program with an import or a helper fails in LLM4AD, or another one is scored than was written."""
    alone = one_function(PROGRAMS[name], "f", PREFACE)
    assert [type(node) for node in ast.parse(alone).body] == [ast.FunctionDef]
    assert computed(PREFACE + alone) == computed(PROGRAMS[name])


def test_plain_functions_stay_as_they_were_written() -> None:
    """Without it the model is shown its own programs without their comments."""
    assert one_function(PROGRAMS["plain"], "f", PREFACE) == "def f(a, b):\n    # weigh\n    return a + 2 * np.abs(b)\n"


@pytest.mark.parametrize("code", ["def f(a:\n", "def g(a):\n    return a\n", "f = lambda a: a\n", ""])
def test_programs_without_the_function_stay_as_they_are(code: str) -> None:
    """Without it their failure would be noted as another one than it is."""
    assert one_function(code, "f", PREFACE) == code
