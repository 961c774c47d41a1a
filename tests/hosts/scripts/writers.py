"""What scripted models write for the problems of the scripts. Each is a function of a request and a number."""

from __future__ import annotations

import os
import re

from eoh_esopt.models.protocol import Request


def _name(request: Request) -> str:
    found = re.findall(r"def (\w+)\(|function named (\w+)\.", request.prompt)[-1]
    return found[0] or found[1]


def _program(request: Request, body: str, idea: str = "{Weigh the second one.}\n") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"{idea}```python\nimport numpy as np\ndef {_name(request)}(first, second):\n{lines}\n```\n"


def valid(request: Request, number: int) -> str:
    return _program(request, f"return first + {number % 997} * second")


def mixed(request: Request, number: int) -> str:
    """Valid, failing, broken and empty replies."""
    kinds = [valid(request, number // 8)] * 5
    kinds += [_program(request, "return unknown"), "I would not know.", "```python\ndef broken(:\n```"]
    return kinds[number % 8]


def small(request: Request, number: int) -> str:
    """Objectives of a millionth, all different."""
    return _program(request, f"return 100.0 + {1 + number % 997} * 1.0e-6")


def endless(request: Request, number: int) -> str:
    return _program(request, f"while True:\n    first += {number % 997}")


def deaf(request: Request, number: int) -> str:
    """Ignores all signals that can be ignored."""
    ignoring = "import signal, time\nfor one in (15, 2, 1):\n    signal.signal(one, signal.SIG_IGN)\n"
    return _program(request, f"{ignoring}time.sleep(600)\nreturn {number % 997}")


def leaving(request: Request, number: int) -> str:
    """Leaves a process in a session of its own behind, and runs out of time."""
    sleeper = ["sleep", os.environ["SLEEPER"]]
    leave = f"import subprocess, time\nsubprocess.Popen({sleeper}, start_new_session=True)\n"
    return _program(request, f"{leave}time.sleep(600)\nreturn {number % 997}")


def undescribed(request: Request, number: int) -> str:
    return _program(request, f"return first + {number % 997} * second", idea="")


def fence_first(request: Request, number: int) -> str:
    return "```bash\npip install numpy\n```\n" + valid(request, number)


def thinking(request: Request, number: int) -> str:
    thought = "<think>Perhaps\n```python\ndef wrong():\n    return None\n```\nor not.</think>\n"
    return thought + valid(request, number)


def formula(request: Request, number: int) -> str:
    """Ends in a return that is no plain name, and has braces in its code."""
    return _program(request, f"table = {{'weight': {number % 997}}}\nreturn first + table['weight'] * second")


def none(request: Request, number: int) -> str:
    return "I would rather not write a program."


def raising(request: Request, number: int) -> str:
    return _program(request, f"raise ValueError({number % 997})")


def at_third(request: Request, number: int) -> str:
    """A program in one of three replies."""
    return valid(request, number) if number % 3 == 0 else "Let me think."


def kind(request: Request, number: int) -> str:
    """A class in place of a function."""
    weight = number % 997
    return (
        f"```python\nclass Value:\n    def value(self, first, second):\n        return first + {weight} * second\n```"
    )


def several(request: Request, number: int) -> str:
    """Two functions, and a call that shows their use."""
    weight = number % 997
    return (
        f"```python\ndef weight(first):\n    return {weight} * first\n\ndef value(first, second):\n"
        "    return weight(first) + second\n\nprint(value(1, 2))\n```"
    )
