"""The words of the search operators: short prompts that small models follow, built from a task and its parents."""

from __future__ import annotations

from collections.abc import Sequence

from operators.records import Candidate
from operators.task import Task

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


def prefill(task: Task, idea: str = "") -> str:
    """The beginning of the reply for small models: up to the function's docstring, which is the idea if one is given.

    It must not end in a line break: small models then close the block or start again.
    """
    head = f'```python\n{task.imports}\n\n{task.signature}\n    """'
    return f'{head}{idea}"""\n    ' if idea else head


def _stub(task: Task) -> str:
    docstring = task.docstring.replace("\n", "\n    ")
    return f'{task.imports}\n\n{task.signature}\n    """{docstring}"""'


def _fence(code: str) -> str:
    return f"```python\n{code.strip()}\n```"
