"""The words of the search operators: short prompts that small models follow, built from a task and its parents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from operators.records import Candidate
from operators.task import Idea, Task

_FORMAT = (
    "Reply with one sentence in braces that states the idea, then the complete function in a Python code block. "
    "Keep it short. No example usage, no explanation."
)


def from_task(task: Task) -> str:
    """i1: the task alone."""
    return f"{task.description}\nWrite this Python function:\n{_fence(_stub(task))}\n{_FORMAT}"


def from_parents(task: Task, parents: Sequence[Candidate], request: str) -> str:
    """The task, the parents' ideas and programs, and what to do with them."""
    shown = "\n".join(
        f"Heuristic {number}: {parent.idea}\n{_fence(parent.code)}" for number, parent in enumerate(parents, 1)
    )
    return f"{task.description}\n{shown}\n{request}\n{_FORMAT}"


def prefill(task: Task, idea: Idea | None = None) -> str:
    """The beginning of the reply for small models: into the docstring, or up to an idea's first line of code.

    It must not end in a line break: small models then close the block or start again.
    """
    head = f'```python\n{task.imports}\n\n{task.signature}\n    """'
    return f'{head}{idea.text}"""\n    {idea.hint}' if idea else head


@dataclass(frozen=True)
class Number:
    """A number in a parent's function.

    Attributes:
        text: as it is written.
        before: the program up to it, without trailing blanks.
    """

    text: str
    before: str


def numbers(task: Task, code: str) -> list[Number]:
    """The fractional numbers inside the task's function: its settings, not its indices."""
    start = re.search(rf"^def {re.escape(task.function)}\w*\(.*?:\n", code, re.MULTILINE | re.DOTALL)
    if start is None:
        return []
    found = re.finditer(r"(?<![\w.])\d*\.\d+(?![\w.])", code[start.end() :])
    return [Number(match.group(), code[: start.end() + match.start()].rstrip()) for match in found]


def prefill_before(number: Number) -> str:
    """The beginning of the reply for small models: the parent's program up to one of its numbers."""
    return f"```python\n{number.before.lstrip()}"


def _stub(task: Task) -> str:
    docstring = task.docstring.replace("\n", "\n    ")
    return f'{task.imports}\n\n{task.signature}\n    """{docstring}"""'


def _fence(code: str) -> str:
    return f"```python\n{code.strip()}\n```"
