"""From trajectories to a new version of the skill: chosen, read one by one, turned into edits, merged, applied.

Everything on the way is kept in a folder: the trajectories that were read as Markdown, where they come from, and what
became of every lesson and every edit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import write_atomically
from train_adapters.skills.document import length, parse, render
from train_adapters.skills.lessons import Lesson, lessons_of, question
from train_adapters.skills.merge import Edits, edits_of
from train_adapters.skills.patches import Applied, apply
from train_adapters.skills.selection import Rule, Selection, select
from train_adapters.skills.shorten import shortened
from train_adapters.skills.versions import make
from train_adapters.skills.writer import Answers, Cost, Failure, Writer
from train_adapters.trajectories import Kept

MANIFEST = "selection.json"
REVISION = "revision.json"


class Outcome(str, Enum):
    """What became of an attempt at a new version."""

    PROPOSED = "proposed"
    """There is one."""
    UNCHANGED = "unchanged"
    """Nothing new was learnt: there was no trajectory, or no edit applies."""
    REFUSED = "refused"
    """It would be too long, and could not be shortened."""
    FAILED = "failed"
    """The language model gave no usable answer."""


@dataclass(frozen=True)
class Recipe:
    """How a skill is distilled.

    Attributes:
        rule: which trajectories are read.
        most: most of them.
        lines: most lines of the skill.
    """

    rule: Rule
    most: int = 16
    lines: int = 80


@dataclass(frozen=True)
class Revision:
    """What an attempt came to.

    Attributes:
        outcome: what became of it.
        text: of the new version; as before where there is none.
        reason: in words, for people; empty for a new version.
        read: trajectories that were read.
        lessons: that they taught.
        made: edits that were made.
        dropped: edits that did not apply.
        failures: questions that were not answered.
        cost: of asking.
    """

    outcome: Outcome
    text: str
    reason: str
    read: int
    lessons: int
    made: int
    dropped: int
    failures: tuple[Failure, ...]
    cost: Cost

    def as_fields(self) -> dict[str, Any]:
        """As an event holds it; the text is in a file."""
        fields = {**asdict(self), "outcome": self.outcome.value}
        del fields["text"]
        return {**fields, "failures": [{**asdict(one), "kind": one.kind.value} for one in self.failures]}


def distil(kept: Sequence[Kept], skill: str, writer: Writer, recipe: Recipe, folder: Path) -> Revision:
    """Learn from trajectories.

    Args:
        kept: the trajectories, in the order they were played.
        skill: the version to start from; empty for none.
        writer: asks the language model.
        recipe: how.
        folder: takes what is worth keeping; made where it is not there.

    Raises:
        UserError: the folder cannot be written, or the model in training is gone.
    """
    selection = select(kept, recipe.rule, recipe.most)
    _keep_selection(folder, selection)
    asked = {one.id: question(one.text, failed=one.candidate.failed) for one in selection.chosen}
    answers = writer.ask(asked, lessons_of)
    edits = edits_of(writer, skill, answers.found)
    applied = apply(parse(skill), edits.patches)
    text = render(applied.document) if applied.made else skill
    shorter = shortened(writer, text, recipe.lines) if applied.made and length(text) > recipe.lines else None
    revision = _revision(skill, text, recipe, answers, edits, applied, shorter)
    _keep_revision(folder, revision, answers, applied)
    return revision


def _revision(
    skill: str,
    text: str,
    recipe: Recipe,
    answers: Answers[tuple[Lesson, ...]],
    edits: Edits,
    applied: Applied,
    shorter: Answers[str] | None,
) -> Revision:
    failures, cost = answers.failures + edits.failures, answers.cost + edits.cost
    if shorter is not None:
        failures, cost = failures + shorter.failures, cost + shorter.cost
        text = shorter.found.get("shorten", text)
    outcome, reason = Outcome.PROPOSED, ""
    if text == skill:
        lost = bool(failures) and not edits.patches
        outcome = Outcome.FAILED if lost else Outcome.UNCHANGED
        reason = f"{failures[0].what}: {failures[0].kind.value}: {failures[0].text}" if lost else "nothing new"
    elif length(text) > recipe.lines:
        outcome, reason = Outcome.REFUSED, f"{length(text)} lines, and at most {recipe.lines} are allowed"
    return Revision(
        outcome=outcome,
        text=text if outcome is Outcome.PROPOSED else skill,
        reason=reason,
        read=len(answers.found) + len(answers.failures),
        lessons=sum(map(len, answers.found.values())),
        made=len(applied.made),
        dropped=len(applied.dropped),
        failures=failures,
        cost=cost,
    )


def _keep_selection(folder: Path, selection: Selection) -> None:
    logs = folder / "trajectories"
    make(logs)
    for one in selection.chosen:
        write_atomically(logs / one.file, one.text)
    write_atomically(folder / MANIFEST, json.dumps(selection.manifest(), indent=1) + "\n")


def _keep_revision(folder: Path, revision: Revision, answers: Answers[tuple[Lesson, ...]], applied: Applied) -> None:
    content = {
        **revision.as_fields(),
        "by_trajectory": {name: [one.as_dict() for one in found] for name, found in answers.found.items()},
        "edits": [patch.as_dict() for patch in applied.made],
        "dropped_edits": [{**one.patch.as_dict(), "reason": one.reason} for one in applied.dropped],
    }
    write_atomically(folder / REVISION, json.dumps(content, indent=1) + "\n")
