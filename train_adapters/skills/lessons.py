"""What one trajectory teaches: the question that the language model is asked, and how its answer is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from operators.context import insights_of
from train_adapters.skills.lenient import echoes, objects_of, words_of
from train_adapters.skills.markdown import clipped, fenced
from train_adapters.skills.writer import PLAIN

MOST_LESSONS = 3
LONGEST_LOG = 12_000
"""Characters of a trajectory that are shown: its beginning and its end."""

_LONGEST = 300  # characters of a field

_EXAMPLE = '[{"title": "a few words", "description": "when it applies", "content": "what to do"}]'

_ASKED = {
    True: "The attempt failed. Say what caused the failure and how to avoid it in other tasks of this kind.",
    False: "The attempt succeeded. Say what made it succeed, and how to do as well in fewer steps.",
}


@dataclass(frozen=True)
class Lesson:
    """What a trajectory teaches.

    Attributes:
        title: a few words.
        description: when it applies; may be empty.
        content: what to do.
    """

    title: str
    description: str
    content: str

    def as_dict(self) -> dict[str, str]:
        """The fields by name."""
        return asdict(self)


def question(log: str, *, failed: bool) -> tuple[str, ...]:
    """What the model is asked about one trajectory: for JSON first, then for a plain list.

    Args:
        log: the trajectory as Markdown.
        failed: whether it is a failure.
    """
    asked = "\n".join(
        (
            "Below is the log of an agent's attempt at a task.",
            fenced(clipped(log, LONGEST_LOG)),
            _ASKED[failed],
            f"Write at most {MOST_LESSONS} general lessons that help with other tasks, not the answer to this one.",
        )
    )
    return f"{asked} Reply with a JSON list only, such as:\n{_EXAMPLE}", f"{asked}\n{PLAIN}"


def lessons_of(reply: str) -> tuple[Lesson, ...] | None:
    """The lessons of a reply: its JSON objects, or else its bulleted or numbered lines; None where it has neither."""
    found = [lesson for one in objects_of(reply) if (lesson := _lesson(one))]
    found = found or [Lesson("", "", line) for line in insights_of(reply)]
    return tuple(dict.fromkeys(found))[:MOST_LESSONS] or None


def _lesson(fields: Mapping[str, Any]) -> Lesson | None:
    known = {str(name).casefold(): " ".join(words_of(value).split())[:_LONGEST] for name, value in fields.items()}
    title, description = known.get("title", ""), known.get("description", "")
    content = known.get("content", "") or description
    return None if echoes(content, _EXAMPLE) else Lesson(title, description, content)
