"""The words of the search operators: short prompts that small models follow, built from a task and its parents."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from operators.records import Candidate
from operators.task import Idea, Task

_WHOLE_REPLY = (
    "Reply with one sentence in braces that states the idea, then the complete function in a Python code block. "
    "Keep it short. No example usage, no explanation."
)
_CODE_ONLY = "Reply with the short function only."


def from_task(task: Task, insights: Sequence[str] = (), *, prefilled: bool) -> str:
    """i1: the task alone. With a prefilled reply the format needs no words."""
    request = f"Write this Python function:\n{_fence(stub(task))}"
    return f"{task.description}\n{_insights(insights)}{request}\n{_format(prefilled)}"


def from_parents(
    task: Task, parents: Sequence[Candidate], request: str, insights: Sequence[str] = (), *, prefilled: bool
) -> str:
    """The task, the parents' ideas and programs, and what to do with them."""
    shown = "\n".join(_parent(number, parent) for number, parent in enumerate(parents, 1))
    return f"{task.description}\n{_insights(insights)}{shown}\n{request}\n{_format(prefilled)}"


def _insights(insights: Sequence[str]) -> str:
    """What earlier heuristics have taught; nothing where there is nothing yet."""
    return "".join(f"{line}\n" for line in ("Keep in mind:", *(f"- {one}" for one in insights))) if insights else ""


def _parent(number: int, parent: Candidate) -> str:
    """A parent's program, headed by its idea unless its docstring says that already."""
    idea = "" if parent.idea in parent.code else f" {parent.idea}"
    return f"Heuristic {number}:{idea}\n{_fence(parent.code)}"


def _format(prefilled: bool) -> str:
    return _CODE_ONLY if prefilled else _WHOLE_REPLY


def prefill(task: Task, idea: Idea | None = None) -> str:
    """The beginning of the reply for small models: into the docstring, or up to an idea's first line of code.

    It must not end in a line break: small models then close the block or start again.
    """
    head = f'```python\n{task.imports}\n\n{task.signature}\n    """'
    if idea is None:
        return head
    return f'{head}{idea.text}"""' + (f"\n    {idea.hint}" if idea.hint else "")


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
    """The fractional numbers inside the task's function: its settings, not its indices, nor what comments say."""
    lines = code.splitlines(keepends=True)
    inside = False
    found = []
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    for token, following in pairwise(tokens):
        inside = inside or (token.string == "def" and following.string.startswith(task.function))
        if inside and token.type == tokenize.NUMBER and _is_fraction(token.string):
            row, column = token.start
            before = "".join(lines[: row - 1]) + lines[row - 1][:column]
            found.append(Number(token.string, before.rstrip()))
    return found


def _is_fraction(text: str) -> bool:
    """Whether a number is written with a point, and is neither zero nor imaginary."""
    return "." in text and text[-1] not in "jJ" and float(text) != 0


def prefill_before(number: Number) -> str:
    """The beginning of the reply for small models: the parent's program up to one of its numbers."""
    return f"```python\n{number.before.lstrip()}"


def stub(task: Task) -> str:
    """The function that is asked for: imports, signature, and the facts as its docstring."""
    docstring = task.docstring.replace('"""', "'''").replace("\n", "\n    ")
    end = " " if docstring.endswith('"') else ""
    return f'{task.imports}\n\n{task.signature}\n    """{docstring}{end}"""'


def _fence(code: str) -> str:
    return f"```python\n{code.strip()}\n```"
