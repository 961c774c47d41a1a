"""Which trajectories a skill is learnt from, for each kind of task, and what the manifest says of it."""

from __future__ import annotations

import hashlib

import pytest
from skill_cases import kept

from train_adapters.adapter import Ending
from train_adapters.skills.markdown import clipped, fenced
from train_adapters.skills.selection import FAILED, SUCCEED, rule_of, select
from train_adapters.trajectories import Kept

PLAYED = [
    kept("a", 0.0, candidate=1, sample=0),
    kept("a", 0.0, candidate=0, sample=1),
    kept("a", 1.0, candidate=1, sample=1, turns=3),
    kept("a", 1.0, candidate=0, sample=0, turns=2),
    kept("b", 0.6, candidate=0),
    kept("b", None, candidate=1, ending=Ending.INFRA_FAILED),
    kept("a", 0.2, generation=1, candidate=1),
    kept("c", None, generation=1, ending=Ending.JUDGE_FAILED),
    kept("d", 1.0, generation=1),
]


def chosen(adapter: str, played: list[Kept] = PLAYED, most: int = 100) -> list[tuple[str, str, int, int, int]]:
    found = select(played, rule_of(adapter), most).chosen
    rows = [(one.candidate.kept.trajectory, one.candidate.outcome) for one in found]
    return [(one.task, outcome, one.generation, one.candidate, one.sample) for one, outcome in rows]


def test_math_takes_one_failure_a_problem() -> None:
    """Else a problem that many directions fail crowds out the others, or successes are analysed as failures."""
    assert chosen("math") == [("a", FAILED, 0, 0, 1), ("b", FAILED, 0, 0, 0)]


def test_docvqa_takes_the_last_occurrences() -> None:
    """Else old trajectories of weights long gone are learnt from; and an ANLS of 0.6 counts as a failure."""
    assert chosen("docvqa") == [("a", FAILED, 1, 1, 0), ("d", SUCCEED, 1, 0, 0), ("b", SUCCEED, 0, 0, 0)]
    many = [kept(f"t{number}", 0.0, generation=number) for number in range(70)]
    assert {task for task, *_ in chosen("docvqa", many)} == {f"t{number}" for number in range(20, 70)}


def test_webarena_takes_all_that_count() -> None:
    """Else trajectories of the web are dropped by a rule that is not theirs."""
    assert len(chosen("webarena")) == 7


def test_other_adapters_have_a_rule() -> None:
    """Else a user's own environment has no skills."""
    assert chosen("mine.py") == [
        ("d", SUCCEED, 1, 0, 0),
        ("a", FAILED, 1, 1, 0),
        ("a", SUCCEED, 0, 0, 0),
        ("b", FAILED, 0, 0, 0),
    ]
    assert select(PLAYED, rule_of("mine.py", 0.5), 9).manifest()["chosen"] == {SUCCEED: 3, FAILED: 1}


@pytest.mark.parametrize("adapter", ["math", "docvqa", "webarena", "mine.py"])
def test_failures_of_ours_are_never_learnt_from(adapter: str) -> None:
    """Else the agent is taught to avoid what was not its fault."""
    selection = select(PLAYED, rule_of(adapter), 100)
    assert all(one.candidate.kept.trajectory.ending.counts for one in selection.chosen)
    assert selection.left_out == {"infra_failed": 1, "judge_failed": 1}


def test_the_manifest_says_what_was_read() -> None:
    """Else a skill cannot be traced to what it was learnt from, or a changed file is not noticed."""
    selection = select(PLAYED, rule_of("math"), 100)
    manifest = selection.manifest()
    first = manifest["rows"][0]
    text = selection.chosen[0].text
    assert first["file"] == "trajectories/traj000001_FAILED.md"
    assert first["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert (first["source"], first["line"]) == ("trajectories/generation-0000/wave-0000.jsonl", 1)
    assert not str(first["source"]).startswith("/")
    assert ["d", FAILED] in manifest["missing_task_outcomes"]
    assert manifest["considered"] == {FAILED: 4, SUCCEED: 3}
    assert "one FAILED" in manifest["selection"]


def test_a_log_has_fixed_headings() -> None:
    """Else whoever reads the logs, or prompts about them, finds other headings in each."""
    [one, *_] = select([kept("a", 0.0, turns=2)], rule_of("math"), 1).chosen
    headings = [line for line in one.text.splitlines() if line.startswith("#")]
    turn = ["### Shown (user)", "### Reply"]
    assert headings == ["# Trajectory of task a", "## Outcome", "## Turn 1", *turn, "## Turn 2", *turn]
    assert "- outcome: FAILED" in one.text


def test_nothing_in_a_log_ends_its_fence() -> None:
    """Else a reply can pretend to be a heading of the log, or an instruction outside of it."""
    text = fenced("````\n# Outcome\n```")
    assert text.startswith("`````\n")
    assert text.endswith("\n`````")
    assert clipped("x" * 100, 10).startswith("xxxxx\n[... 90 characters left out ...]\nxxxxx")
    assert clipped("short", 10) == "short"
