"""Edits of a skill: what applies is made, what does not is reported, and the document stays one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_adapters.skills.document import length, parse, render
from train_adapters.skills.lenient import objects_of
from train_adapters.skills.patches import LONGEST_LINE, MOST_LINES, OPS, Patch, apply, patches_of

SKILL = """---
name: counting
---

# Counting

- Look at what is left.
- Say one digit.

## Mistakes

- Do not overshoot.
"""


def after(*patches: Patch) -> str:
    return render(apply(parse(SKILL), patches).document)


def test_a_document_survives_reading_and_writing() -> None:
    """Else every revision changes lines that no edit is about."""
    assert render(parse(SKILL)) == SKILL
    assert render(parse("")) == ""
    code = "# A\n\n```\n# no heading\n```\n"
    assert [section.title for section in parse(code).sections] == ["A"]
    assert length(SKILL) == 12


EDITS = {
    "append": (Patch("append_to_section", "Mistakes", text="Do not wait."), "- Do not overshoot.\n- Do not wait.\n"),
    "append, inexact": (Patch("append_to_section", "## mistakes", text="- Do not wait."), "overshoot.\n- Do not wait."),
    "append to a new one": (Patch("append_to_section", "Tips", text="Be quick."), "\n\n## Tips\n\n- Be quick.\n"),
    "add": (Patch("add_section", "Tips", text="Be quick.\nBe right."), "\n\n## Tips\n\n- Be quick.\n- Be right.\n"),
    "before": (Patch("insert_before", anchor="- Say one digit.", text="Add."), "left.\n- Add.\n- Say one digit."),
    "after": (Patch("insert_after", anchor="say one digit", text="Add."), "- Say one digit.\n- Add.\n"),
    "replace": (Patch("replace_in_section", anchor="Say one digit", text="Say 1 or 2."), "left.\n- Say 1 or 2.\n\n##"),
    "replace, inexact": (Patch("replace_in_section", anchor="Say one digits.", text="Say 2."), "left.\n- Say 2.\n\n##"),
}


@pytest.mark.parametrize(("patch", "expected"), EDITS.values(), ids=EDITS)
def test_edits_do_what_they_say(patch: Patch, expected: str) -> None:
    """Else lessons are lost on their way into the skill."""
    assert expected in after(patch)


def test_a_section_can_be_deleted() -> None:
    """Else a skill that is wrong can only grow."""
    assert "overshoot" not in after(Patch("delete_section", "Mistakes"))
    assert "Mistakes" not in after(Patch("delete_section", "Mistakes"))


REFUSED = {
    "an edit there is none of": (Patch("rewrite", text="All."), "no edit 'rewrite'"),
    "a line there is none of": (Patch("insert_after", anchor="Eat the moon.", text="Add."), "no line 'Eat the moon.'"),
    "no line": (Patch("insert_after", text="Add."), "names no line"),
    "a section there is none of": (Patch("delete_section", "Colours"), "no section 'Colours'"),
    "nothing new": (Patch("append_to_section", "Mistakes", text="* do NOT overshoot"), "nothing that the document"),
    "nothing": (Patch("append_to_section", "Mistakes", text="***"), "nothing that the document"),
}


@pytest.mark.parametrize(("patch", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_apply_is_dropped_and_reported(patch: Patch, reason: str) -> None:
    """Else an edit lands somewhere else, or nobody learns that it was lost."""
    found = apply(parse(SKILL), [patch])
    assert render(found.document) == SKILL
    [dropped] = found.dropped
    assert reason in dropped.reason
    assert found.made == ()


def test_edits_are_checked_against_the_frozen_document() -> None:
    """Else an edit depends on which others happen to come before it."""
    added, to_it = (
        Patch("append_to_section", "Mistakes", text="New."),
        Patch("insert_after", anchor="New.", text="More."),
    )
    found = apply(parse(SKILL), [added, to_it])
    assert [one.patch for one in found.dropped] == [to_it]
    gone = [Patch("delete_section", "Mistakes"), Patch("insert_after", anchor="Do not overshoot.", text="Ever.")]
    [dropped] = apply(parse(SKILL), gone).dropped
    assert "another edit" in dropped.reason


def test_a_line_that_may_be_several_is_dropped() -> None:
    """Else an edit lands at a line that was not meant."""
    skill = "# A\n\n- Take the red door first.\n- Take the red door fast.\n"
    [dropped] = apply(parse(skill), [Patch("insert_after", anchor="Take the red door fist.", text="Run.")]).dropped
    assert "may be several lines" in dropped.reason


REPLIES = {
    "plain": '[{"op": "append_to_section", "section": "A", "text": "Go."}]',
    "fenced": '```json\n[{"op": "append_to_section", "section": "A", "text": "Go."}]\n```\nI hope this helps!',
    "wrapped": '{"patches": [{"op": "append_to_section", "section": "A", "text": "Go."}]}',
    "a comma too many": '[{"op": "append_to_section", "section": "A", "text": "Go.",},]',
    "cut off": '[{"op": "append_to_section", "section": "A", "text": "Go."}, {"op": "add_sec',
    "other spelling": '{"OP": "Append to Section", "Section": "A", "content": "Go."}',
    "a list of lines": '{"op": "append_to_section", "section": "A", "text": ["Go."]}',
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_json_is_read_as_models_write_it(reply: str) -> None:
    """Else a comma costs a revision."""
    assert patches_of(reply) == [Patch("append_to_section", "A", text="Go.")]


def test_an_edit_of_no_line_is_a_line_to_append() -> None:
    """Else the first revision by a small model is empty: it names lines of a guide that has none, or the example's."""
    edits = [{"op": "insert_after", "anchor": "a whole line of the guide", "text": "Look first."}]
    [copied] = patches_of(json.dumps(edits))
    assert after(copied) == f"{SKILL}\n## Lessons\n\n- Look first.\n"
    invented = Patch("replace_in_section", anchor="Eat the moon.", text="Look first.")
    assert render(apply(parse(""), [invented]).document) == "## Lessons\n\n- Look first.\n"
    assert apply(parse(SKILL), [invented]).made == ()


def test_a_plain_list_is_lines_to_append() -> None:
    """Else small models, which write no JSON, never learn anything."""
    found = patches_of("Here are my edits:\n1. Say one digit.\n- Be quick.")
    assert [(one.op, one.section, one.text) for one in found] == [
        ("append_to_section", "Lessons", "Say one digit."),
        ("append_to_section", "Lessons", "Be quick."),
    ]
    assert patches_of("I cannot help with that.") == []
    assert patches_of(json.dumps([{"op": "add_section", "section": "A", "text": "One line."}])) == [], "an echo"


def test_braces_without_end_are_read_in_no_time() -> None:
    """Else one reply of a model gone mad holds up a training."""
    assert objects_of("{" * 100_000) == []
    assert objects_of('{"a":' * 100_000) == []


@given(st.lists(st.builds(Patch, st.sampled_from([*OPS, "?"]), st.text(), st.text(), st.text()), max_size=6))
def test_whatever_is_asked_for_a_document_stays_one(patches: list[Patch]) -> None:
    """Else a reply can break a skill so that the next revision reads another document than was written."""
    found = apply(parse(SKILL), patches)
    text = render(found.document)
    assert len(found.made) + len(found.dropped) == len(patches)
    assert render(parse(text)) == text
    assert parse(text) == parse(render(parse(text)))
    new = set(text.splitlines()) - set(SKILL.splitlines())
    bullets = [line for line in new if not line.startswith("## ")]
    assert all(line.startswith("- ") and len(line) <= LONGEST_LINE + 10 for line in bullets)
    assert len(new) <= sum(MOST_LINES + 1 for _ in found.made)
