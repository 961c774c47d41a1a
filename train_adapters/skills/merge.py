"""From lessons to edits of the skill: written for a few trajectories at a time, then merged until one list is left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from train_adapters.skills.lessons import Lesson
from train_adapters.skills.markdown import fenced
from train_adapters.skills.patches import LESSONS, Patch, patches_of
from train_adapters.skills.writer import PLAIN, Cost, Failure, Writer

GROUP = 5
"""Trajectories whose lessons are turned into edits together, and lists of edits merged in one go."""

T = TypeVar("T")

_OF_SECTIONS = (
    f'{{"op": "append_to_section", "section": "{LESSONS}", "text": "one line"}}',
    '{"op": "add_section", "section": "a title", "text": "one line"}',
)
_OF_WHAT_IS_THERE = (
    '{"op": "replace_in_section", "anchor": "a whole line of the guide", "text": "a better line"}',
    '{"op": "insert_after", "anchor": "a whole line of the guide", "text": "one line"}',
    '{"op": "insert_before", "anchor": "a whole line of the guide", "text": "one line"}',
    '{"op": "delete_section", "section": "a title"}',
)


@dataclass(frozen=True)
class Edits:
    """What the lessons came to.

    Attributes:
        patches: in the order to make them.
        failures: of questions that were not answered; where a merge was not, its edits are kept as they were.
        cost: of all questions.
    """

    patches: tuple[Patch, ...]
    failures: tuple[Failure, ...]
    cost: Cost


def edits_of(writer: Writer, skill: str, lessons: Mapping[str, Sequence[Lesson]]) -> Edits:
    """Edits of a skill that bring in what was learnt.

    Args:
        writer: writes and merges them.
        skill: the document that all of them are written against.
        lessons: by trajectory.

    Raises:
        UserError: the model in training is gone.
    """
    groups = enumerate(_grouped(list(lessons.values())), 1)
    questions = {f"edits {number}": _question(skill, group) for number, group in groups}
    answers = writer.ask(questions, _read)
    lists, failures, cost, level = list(answers.found.values()), answers.failures, answers.cost, 0
    while len(lists) > 1:
        level += 1
        groups_of_lists = _grouped(lists)
        questions = {
            f"merge {level}.{number}": _merge_question(skill, group)
            for number, group in enumerate(groups_of_lists, 1)
            if len(group) > 1
        }
        merged = writer.ask(questions, _read)
        failures, cost = failures + merged.failures, cost + merged.cost
        lists = [
            merged.found.get(f"merge {level}.{number}") or [patch for one in group for patch in one]
            for number, group in enumerate(groups_of_lists, 1)
        ]
    return Edits(tuple(dict.fromkeys(patch for one in lists for patch in one)), failures, cost)


def _read(reply: str) -> list[Patch] | None:
    return patches_of(reply) or None


def _grouped(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[first : first + GROUP] for first in range(0, len(items), GROUP)]


def _form(skill: str) -> str:
    """The edits that there are; of an empty guide no line can be named."""
    edits = _OF_SECTIONS + (_OF_WHAT_IS_THERE if skill else ())
    return "\n".join(("Reply with a JSON list of edits only. The edits there are:", *edits))


def _guide(skill: str) -> str:
    return f"An agent follows this guide:\n{fenced(skill)}" if skill else "An agent's guide is to be written."


def _question(skill: str, group: Sequence[Sequence[Lesson]]) -> tuple[str, ...]:
    lessons = [lesson for one in group for lesson in one]
    asked = "\n".join(
        (
            _guide(skill),
            "These lessons were learnt from its attempts:",
            *(f"- {': '.join(filter(None, (one.title, one.content)))}" for one in lessons),
            "Edit the guide so that it says what helps most, in short imperative lines, without repeating itself.",
        )
    )
    return f"{asked}\n{_form(skill)}", f"{asked}\n{PLAIN}"


def _merge_question(skill: str, group: Sequence[Sequence[Patch]]) -> tuple[str, ...]:
    edits = [json.dumps(patch.as_dict()) for one in group for patch in one]
    asked = "\n".join(
        (
            _guide(skill),
            "These edits of the guide were proposed:",
            *edits,
            "Merge them: keep what helps most, join those that say the same, leave out what contradicts the rest.",
        )
    )
    return f"{asked}\n{_form(skill)}", f"{asked}\n{PLAIN}"
