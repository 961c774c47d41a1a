"""Asking for skills: what is not answered is asked again, typed, counted, and never lost without a word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from skill_cases import LESSON, asks_for, kept, scripted

from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.skills.distil import Outcome, Recipe, Revision, distil
from train_adapters.skills.document import length
from train_adapters.skills.lessons import MOST_LESSONS, Lesson, lessons_of
from train_adapters.skills.selection import rule_of
from train_adapters.skills.versions import Skill, keep, read_skill
from train_adapters.skills.versions import kept as kept_version
from train_adapters.skills.writer import ATTEMPTS, FailureKind, Writer
from train_adapters.trajectories import Kept

RULE = rule_of("mine.py")


def writer(model: ScriptedModel) -> Writer:
    return Writer(model, 1, "test", 64)


def played(count: int = 3) -> list[Kept]:
    return [kept(f"t{number}", 0.0) for number in range(count)]


def distilled(folder: Path, model: ScriptedModel, *, skill: str = "", count: int = 3, lines: int = 80) -> Revision:
    return distil(played(count), skill, writer(model), Recipe(RULE, 16, lines), folder)


def test_lessons_become_lines_of_the_skill(tmp_path: Path) -> None:
    """Else nothing is learnt."""
    model = ScriptedModel(scripted(edits=json.dumps([{"op": "add_section", "section": "Tips", "text": "Add."}])))
    found = distilled(tmp_path / "out", model)
    assert (found.outcome, found.text) == (Outcome.PROPOSED, "## Tips\n\n- Add.\n")
    assert (found.read, found.lessons, found.made, found.dropped) == (3, 3, 1, 0)
    assert found.cost.calls == len(model.requests) == 4
    logs = sorted(path.name for path in (tmp_path / "out" / "trajectories").iterdir())
    assert logs == [f"traj00000{number}_FAILED.md" for number in (1, 2, 3)]
    record = json.loads((tmp_path / "out" / "revision.json").read_text())
    assert record["by_trajectory"]["traj000002"] == [LESSON]
    assert record["edits"] == [{"op": "add_section", "section": "Tips", "text": "- Add."}]
    assert all(request.new_tokens == 64 for request in model.requests)


@pytest.mark.parametrize("skill", ["", "# A\n\n- One.\n"])
def test_edits_of_lines_are_offered_where_there_are_lines(tmp_path: Path, skill: str) -> None:
    """Else small models edit lines that an empty guide does not have, and the first revision comes to nothing."""
    model = ScriptedModel(scripted(edits="- Add."))
    distilled(tmp_path / "out", model, skill=skill)
    asked = [one.prompt for one in model.requests if "append_to_section" in str(one.prompt)]
    assert [("insert_after" in str(prompt)) for prompt in asked] == [bool(skill)]


def test_many_edits_are_merged_by_levels(tmp_path: Path) -> None:
    """Else the edits of forty trajectories do not fit into one question, or are made side by side and repeat."""
    model = ScriptedModel(scripted())
    recipe = Recipe(RULE, 40, 80)
    found = distil(played(40), "", writer(model), recipe, tmp_path / "out")
    asked = [asks_for(request) for request in model.requests]
    assert [asked.count(what) for what in ("lessons", "edits", "merge")] == [40, 8, 3]
    assert found.made == 1
    assert found.text.startswith("## Lessons\n\n- Merged")


def test_a_merge_that_fails_loses_no_edit(tmp_path: Path) -> None:
    """Else one unreadable reply throws away what ten trajectories taught."""
    found = distilled(tmp_path / "out", ScriptedModel(scripted(merge="No.")), count=10)
    assert found.made == 2
    assert [(one.what, one.kind) for one in found.failures] == [("merge 1.1", FailureKind.UNREADABLE)]


def test_an_unreadable_answer_is_asked_for_again() -> None:
    """Else every second lesson of a small model is lost, or the same reply is drawn again."""
    replies = iter(("Hm.", "Well.", json.dumps([LESSON])))
    model = ScriptedModel(lambda request, number: next(replies))
    found = writer(model).ask({"a": ("JSON?", "A list?")}, lessons_of)
    assert [request.prompt for request in model.requests] == ["JSON?", "A list?", "A list?"]
    assert found.found == {"a": (Lesson("Count", "always", "Say one digit."),)}
    assert found.failures == ()
    assert found.cost.calls == ATTEMPTS == 3
    assert len({request.seed for request in model.requests}) == 3


def test_what_is_never_answered_is_a_failure_with_its_kind() -> None:
    """Else an answer is missing and nobody knows why."""
    model = ScriptedModel(lambda request, number: json.dumps([LESSON]) if "good" in request.prompt else "I will not.")
    found = writer(model).ask({"good": ["good"], "bad": ["bad"]}, lessons_of)
    assert list(found.found) == ["good"]
    [failure] = found.failures
    assert (failure.what, failure.kind, failure.attempts) == ("bad", FailureKind.UNREADABLE, ATTEMPTS)
    assert failure.text == "I will not."


def test_a_question_that_is_too_long_is_not_asked_again() -> None:
    """Else a model with a small context is asked three times for nothing."""

    class Full(ScriptedModel):
        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            self.requests += requests
            return [Reply("", 9999, 0, truncated=True) for _ in requests]

    model = Full()
    found = writer(model).ask({"a": ["?"]}, lessons_of)
    assert [one.kind for one in found.failures] == [FailureKind.TOO_LONG]
    assert len(model.requests) == 1


class Endpoint(ScriptedModel):
    """Answers every second request of a batch."""

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        replies = dict(enumerate(super().generate(requests)))
        raise PartialReplies("the endpoint is busy", {place: one for place, one in replies.items() if place % 2})


def test_an_endpoint_that_answers_in_part_loses_only_the_rest(tmp_path: Path) -> None:
    """Else one refused request throws away a batch, or passes for an answer."""
    found = writer(Endpoint(scripted())).ask(
        {str(number): ["the log of an agent's attempt"] for number in range(4)}, lessons_of
    )
    assert list(found.found) == ["1", "3"]
    assert [(one.what, one.kind) for one in found.failures] == [
        ("0", FailureKind.UNREACHABLE),
        ("2", FailureKind.UNREACHABLE),
    ]


def test_no_answer_at_all_fails_the_revision(tmp_path: Path) -> None:
    """Else silence passes for nothing to learn."""
    found = distilled(tmp_path / "out", ScriptedModel(scripted(lessons="No.")), skill="# A\n\n- One.\n")
    assert (found.outcome, found.text) == (Outcome.FAILED, "# A\n\n- One.\n")
    assert "traj000001: unreadable: No." in found.reason


def test_edits_that_do_not_apply_leave_the_skill(tmp_path: Path) -> None:
    """Else a revision without any change is checked by rollouts."""
    edits = json.dumps([{"op": "insert_after", "anchor": "Nowhere.", "text": "Add."}])
    found = distilled(tmp_path / "out", ScriptedModel(scripted(edits=edits)), skill="# A\n\n- One.\n")
    assert (found.outcome, found.made, found.dropped) == (Outcome.UNCHANGED, 0, 1)
    record = json.loads((tmp_path / "out" / "revision.json").read_text())
    assert "no line" in record["dropped_edits"][0]["reason"]


LONG = "# A\n\n" + "".join(f"- Rule {number}.\n" for number in range(8))


def test_a_skill_that_is_too_long_is_compressed(tmp_path: Path) -> None:
    """Else the prompt grows with every revision."""
    model = ScriptedModel(scripted(shorten="```\n# A\n\n- All of it.\n```"))
    found = distilled(tmp_path / "out", model, skill=LONG, lines=10)
    assert (found.outcome, found.text) == (Outcome.PROPOSED, "# A\n\n- All of it.\n")
    found = distilled(tmp_path / "fits", model, skill=LONG, lines=40)
    assert length(found.text) == 14
    assert "Rule 7." in found.text


@pytest.mark.parametrize("reply", [LONG + LONG, "Sure!", "", "# A\n"])
def test_a_skill_that_cannot_be_compressed_is_refused(tmp_path: Path, reply: str) -> None:
    """Else the hard limit is none, or an empty skill takes the place of a long one."""
    found = distilled(tmp_path / "out", ScriptedModel(scripted(shorten=reply)), skill=LONG, lines=10)
    assert (found.outcome, found.text) == (Outcome.REFUSED, LONG)
    assert "at most 10 are allowed" in found.reason
    assert [one.what for one in found.failures] == ["shorten"]


def test_a_long_skill_that_is_not_revised_stays(tmp_path: Path) -> None:
    """Else a user's own skill is refused because a revision found nothing new."""
    edits = json.dumps([{"op": "append_to_section", "section": "A", "text": "Rule 1."}])
    found = distilled(tmp_path / "out", ScriptedModel(scripted(edits=edits)), skill=LONG, lines=3)
    assert (found.outcome, found.text) == (Outcome.UNCHANGED, LONG)


def test_lessons_are_read_as_models_write_them() -> None:
    """Else only large models have lessons."""
    assert lessons_of('{"Title": "T", "Content": "C\\nD"}') == (Lesson("T", "", "C D"),)
    assert lessons_of("- One.\n- Two.") == (Lesson("", "", "One."), Lesson("", "", "Two."))
    assert len(lessons_of("\n".join(f"- {number}." for number in range(5))) or ()) == MOST_LESSONS
    assert lessons_of("Nothing to say.") is None
    assert lessons_of('[{"title": "a few words", "content": "What to do when it applies."}]') is None, (
        "an echo of the question"
    )


def test_versions_are_known_by_their_hash(tmp_path: Path) -> None:
    """Else a version that somebody edited passes for the one that was checked."""
    skill = Skill(3, "# A\n\n- One.\n")
    keep(tmp_path / "skills", skill)
    assert kept_version(tmp_path / "skills", 3, skill.sha256) == skill
    with pytest.raises(UserError, match="has changed: its hash was"):
        kept_version(tmp_path / "skills", 3, "0" * 64)
    with pytest.raises(UserError, match="Cannot read the skill"):
        kept_version(tmp_path / "skills", 4, skill.sha256)
    (tmp_path / "empty.md").write_text(" \n")
    with pytest.raises(UserError, match="is empty"):
        read_skill(tmp_path / "empty.md")
