"""The corpus of hostile programs: small Python files, each of which attacks one promise of the sandbox.

A program begins with headers, one a line and in this order, the last two only where they are needed:

    # Promise: what holds whatever the program does, in one sentence.
    # Expect: the statuses it may end with.
    # Walls: the layers without which it must not be run (see `eoh_esopt.sandbox.evaluator.describe`), or none.
    # Score: any. Where the outcome is ok, it need not be that of the heuristic that the program starts from.
    # Tail: "text" * times. Added at the end of the source; for texts that are no Python.

It defines `attack(honest, *arguments)`, which is called in place of the task's function; `honest` is the task's first
seed heuristic. It may attack as it is loaded, too. Nothing in it knows the task.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from operators.records import Status
from operators.task import Task

FOLDER = Path(__file__).parent / "programs"
_HEADER = re.compile(r"# (Promise|Expect|Walls|Score|Tail): (.+)")


@dataclass(frozen=True)
class HostileProgram:
    """One program of the corpus.

    Attributes:
        name: that of its file, without the suffix.
        promise: what it attacks, in one sentence.
        expected: the statuses that keep the promise.
        walls: names of the layers that have to be in force when it runs; without them it might do harm.
        any_score: whether an outcome that is ok may differ from that of the honest heuristic.
        tail: text that ends the source.
        text: the file.
    """

    name: str
    promise: str
    expected: tuple[Status, ...]
    walls: tuple[str, ...]
    any_score: bool
    tail: str
    text: str

    @property
    def portable(self) -> bool:
        """Whether it is harmless, and its promise holds, with process limits alone."""
        return not self.walls

    def source(self, task: Task) -> str:
        """The candidate: the task's first seed heuristic as `_honest`, the program, and the task's function."""
        honest = re.sub(rf"\b{re.escape(task.function)}\b", "_honest", task.seeds[0].code)
        arguments = ", ".join(task.arguments)
        function = f"def {task.function}({arguments}):\n    return attack(_honest, {arguments})\n"
        return f"{honest}\n\n{self.text}\n\n{function}{self.tail}"


def programs() -> tuple[HostileProgram, ...]:
    """All programs, in alphabetical order."""
    return tuple(parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.py")))


def parse(name: str, text: str) -> HostileProgram:
    """Read one program.

    Raises:
        ValueError: a header is missing or says something unknown; the message names the program.
    """
    headers: dict[str, str] = {}
    for line in text.split("\n"):
        match = _HEADER.fullmatch(line)
        if not match:
            break
        headers[match[1]] = match[2]
    try:
        return HostileProgram(
            name=name,
            promise=headers["Promise"],
            expected=tuple(Status(word) for word in headers["Expect"].split()),
            walls=() if headers["Walls"] == "none" else tuple(headers["Walls"].split()),
            any_score={"same": False, "any": True}[headers.get("Score", "same")],
            tail=_tail(headers.get("Tail", "''")),
            text=text,
        )
    except KeyError as error:
        raise ValueError(f"The hostile program {name} has no header, or an unknown word, {error}.") from error
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"A header of the hostile program {name} cannot be read: {error}") from error


def _tail(value: str) -> str:
    text, _, times = value.partition(" * ")
    return str(ast.literal_eval(text)) * int(times or 1)
