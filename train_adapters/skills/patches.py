"""Edits of a skill: small, named, and each checked against the document before any is applied.

All edits of a revision are written against the same frozen document. What refers to a heading or a line that is not
there, or says nothing new, is dropped and reported; what refers to it inexactly is understood where it can mean one
thing only. Code applies the edits, in their order: the model never rewrites the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from operators.context import insights_of
from train_adapters.skills.document import Document, Section
from train_adapters.skills.lenient import echoes, objects_of, words_of

LESSONS = "Lessons"
"""The section of what names none."""

EXAMPLE = "a title, one line, a better line, a whole line of the guide"
"""What stands in the edits that the model is shown."""

LONGEST_LINE = 300
MOST_LINES = 8
"""Lines of one edit; more are cut."""

_CLOSE = 0.8
_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s+")


@dataclass(frozen=True)
class Patch:
    """One edit.

    Attributes:
        op: a key of `OPS`.
        section: title of the section it is about; empty for edits that name a line.
        anchor: the line it is about; empty for edits of whole sections.
        text: what to write, line by line.
    """

    op: str
    section: str = ""
    anchor: str = ""
    text: str = ""

    def as_dict(self) -> dict[str, str]:
        """The fields that are not empty."""
        fields = {"op": self.op, "section": self.section, "anchor": self.anchor, "text": self.text}
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True)
class Dropped:
    """An edit that was not made, and why."""

    patch: Patch
    reason: str


@dataclass(frozen=True)
class Applied:
    """What became of some edits.

    Attributes:
        document: with those that apply.
        made: those, as they were made.
        dropped: the others.
    """

    document: Document
    made: tuple[Patch, ...]
    dropped: tuple[Dropped, ...]


class _DoesNotApply(Exception):
    """Says why."""


def patches_of(reply: str) -> list[Patch]:
    """The edits that a reply asks for: its JSON objects, or else its bulleted lines, as lines to append."""
    found = [patch for one in objects_of(reply) if (patch := _patch(one))]
    return found or [_line_to_append(line) for line in insights_of(reply)]


def apply(frozen: Document, patches: Sequence[Patch]) -> Applied:
    """Make the edits that apply to a document.

    Args:
        frozen: what they were written against.
        patches: in the order in which they are made.
    """
    document, made, dropped = frozen, [], []
    for patch in patches:
        try:
            exact = _with_news(_exact(patch, frozen), document)
            document = OPS[exact.op](document, exact)
        except _DoesNotApply as reason:
            dropped.append(Dropped(patch, str(reason)))
        else:
            made.append(exact)
    return Applied(document, tuple(made), tuple(dropped))


def _patch(fields: Mapping[str, Any]) -> Patch | None:
    """An object as an edit; one that is a lesson in all but name is a line to append."""
    known = {str(name).casefold(): words_of(value) for name, value in fields.items()}
    op = known.get("op", "append_to_section").casefold().replace(" ", "_").replace("-", "_")
    text = known.get("text") or known.get("new") or known.get("content") or ""
    section, anchor = known.get("section", ""), known.get("anchor") or known.get("old") or ""
    if echoes(section if op == "delete_section" else text, EXAMPLE):
        return None
    if op in _BY_LINE and anchor and echoes(anchor, EXAMPLE):
        return _line_to_append(text)
    return Patch(op, section, anchor, text)


def _line_to_append(text: str) -> Patch:
    return Patch("append_to_section", LESSONS, text=text)


def _exact(patch: Patch, frozen: Document) -> Patch:
    """The edit with its references as the document has them."""
    if patch.op not in OPS:
        raise _DoesNotApply(f"there is no edit {patch.op!r}")
    if patch.op in _BY_LINE:
        lines = [line for line in frozen.lines if line]
        if not lines:  # whatever line it names, it can only mean the first one
            return _line_to_append(patch.text)
        return replace(patch, anchor=_found(patch.anchor, lines, "line"))
    titles = [section.title for section in frozen.sections]
    if patch.op in ("append_to_section", "add_section"):
        wanted = _one_line(patch.section.lstrip("# ")) or LESSONS
        return replace(patch, section=next((one for one in titles if _same(one, wanted)), wanted))
    return replace(patch, section=_found(patch.section.lstrip("# "), titles, "section"))


def _found(wanted: str, known: Sequence[str], what: str) -> str:
    """The line or the title that a reference means."""
    by_form = {_form(one): one for one in known}
    if not _form(wanted):
        raise _DoesNotApply(f"it names no {what}")
    near = [_form(wanted)] if _form(wanted) in by_form else get_close_matches(_form(wanted), by_form, 2, _CLOSE)
    if len(near) != 1:
        raise _DoesNotApply(f"there is no {what} {wanted!r}" if not near else f"{wanted!r} may be several {what}s")
    return by_form[near[0]]


def _with_news(patch: Patch, document: Document) -> Patch:
    """The edit with what the document does not say yet, one bullet a line."""
    if patch.op == "delete_section":
        return patch
    said = {_form(line) for line in document.lines}
    new: dict[str, str] = {}
    for line in patch.text.splitlines():
        bullet = _bullet(line)
        if _form(bullet) and _form(bullet) not in said:
            new.setdefault(_form(bullet), bullet)
    if not new:
        raise _DoesNotApply("it says nothing that the document does not say")
    return replace(patch, text="\n".join(list(new.values())[:MOST_LINES]))


def _bullet(line: str) -> str:
    """A line of text as a bullet, so that it is no heading and no fence whatever it begins with."""
    words = _one_line(line).lstrip("#`> ")
    return f"- {_BULLET.sub('', words, count=1)}" if words else ""


def _one_line(text: str) -> str:
    """On one line, cut between words where it is too long."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_LINE else f"{words[:LONGEST_LINE].rsplit(' ', 1)[0]} ..."


def _form(text: str) -> str:
    """What makes two lines the same: their words and numbers."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _same(one: str, other: str) -> bool:
    return _form(one) == _form(other)


def _insert(after: bool) -> Callable[[Document, Patch], Document]:
    def insert(document: Document, patch: Patch) -> Document:
        new = tuple(patch.text.split("\n"))
        return _at_line(document, patch.anchor, (patch.anchor, *new) if after else (*new, patch.anchor))

    return insert


def _replace(document: Document, patch: Patch) -> Document:
    return _at_line(document, patch.anchor, tuple(patch.text.split("\n")))


def _append(document: Document, patch: Patch) -> Document:
    """At the end of the section, which is made where there is none."""
    new = tuple(patch.text.split("\n"))
    for place, section in enumerate(document.sections):
        if _same(section.title, patch.section):
            longer = replace(section, lines=(*section.lines, *new))
            return _with_section(document, place, (longer,))
    return replace(document, sections=(*document.sections, Section(f"## {patch.section}", ("", *new))))


def _delete(document: Document, patch: Patch) -> Document:
    for place, section in enumerate(document.sections):
        if section.title == patch.section:
            return _with_section(document, place, ())
    raise _DoesNotApply(f"another edit has taken the section {patch.section!r} away")


def _at_line(document: Document, anchor: str, lines: tuple[str, ...]) -> Document:
    """The document with lines in place of the first one that is the anchor."""
    if anchor in document.preamble:
        return replace(document, preamble=_instead(document.preamble, anchor, lines))
    for place, section in enumerate(document.sections):
        if anchor in section.lines:
            return _with_section(document, place, (replace(section, lines=_instead(section.lines, anchor, lines)),))
    raise _DoesNotApply(f"another edit has taken the line {anchor!r} away")


def _instead(lines: tuple[str, ...], anchor: str, new: tuple[str, ...]) -> tuple[str, ...]:
    place = lines.index(anchor)
    return (*lines[:place], *new, *lines[place + 1 :])


def _with_section(document: Document, place: int, sections: tuple[Section, ...]) -> Document:
    kept = document.sections
    return replace(document, sections=(*kept[:place], *sections, *kept[place + 1 :]))


OPS: Mapping[str, Callable[[Document, Patch], Document]] = {
    "insert_before": _insert(after=False),
    "insert_after": _insert(after=True),
    "append_to_section": _append,
    "replace_in_section": _replace,
    "add_section": _append,
    "delete_section": _delete,
}
"""What an edit does to a document. An added section of a title that there is already is appended to."""

_BY_LINE = ("insert_before", "insert_after", "replace_in_section")
