"""Insights that the prompts show: read from replies, kept where they pay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.context import MOST_INSIGHTS, Context, ContextHistory, Failure, insights_of, reflection
from operators.records import Candidate
from operators.search import Situation, search_operators
from problems.tsp_construct import TASK

REWARDS = st.one_of(st.none(), st.floats(-10, 10))


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("- Look ahead.\n- Avoid loops.\n", ("Look ahead.", "Avoid loops.")),
        ("Here you are:\n1. Look   ahead.\n2) Avoid loops.", ("Look ahead.", "Avoid loops.")),
        ("* A\n• B\n* A", ("A", "B")),
        ("I would look ahead.", ()),
        ("- What failed:\n- Loops.\n1. Avoid:\n", ("Loops.",)),
        ("", ()),
        ("---\n- \n-no space", ()),
    ],
)
def test_lines_of_a_list_are_insights(reply: str, found: tuple[str, ...]) -> None:
    """Chatter of the model would be shown by every later prompt."""
    assert insights_of(reply) == found


@given(st.text(max_size=3000))
def test_any_reply_gives_few_short_lines(reply: str) -> None:
    """One long reply would fill the context of every later prompt."""
    found = insights_of(reply + "\n- " + "word " * 200 + "\n- a" * 9)
    assert len(found) <= MOST_INSIGHTS
    assert all(len(one) <= 165 and "\n" not in one for one in found)


def test_a_version_that_does_not_pay_is_taken_back() -> None:
    """Insights that make things worse would stay for the rest of the search."""
    history = ContextHistory()
    assert not history.judge(0.5)
    assert history.renew(("a",))
    assert history.current == Context(1, ("a",))
    assert history.judge(0.5), "no better than without"
    assert history.current == Context(0, (), 0.5)
    assert history.renew(("b",))
    assert not history.judge(0.6)
    assert history.current == Context(2, ("b",), 0.6)
    assert not history.judge(0.1), "it has been accepted"


def test_generations_without_a_reward_decide_nothing() -> None:
    """A version would be kept or lost by chance."""
    history = ContextHistory()
    history.judge(0.5)
    history.renew(("a",))
    assert not history.judge(None)
    assert history.renew(("b",))
    assert history.judge(0.4)
    assert history.current.insights == (), "back to the last version that has a reward"


@given(st.lists(st.tuples(REWARDS, st.sampled_from([(), ("a",), ("b",), ("c",)])), max_size=30))
def test_an_accepted_version_beat_the_one_before(steps: list[tuple[float | None, tuple[str, ...]]]) -> None:
    """The list of versions in a report would not say what happened."""
    history = ContextHistory()
    for reward, insights in steps:
        before = history.current
        if history.judge(reward):
            assert history.current.reward is not None
            assert reward is not None
            assert reward <= history.current.reward
        elif reward is not None:
            assert history.current == Context(before.version, before.insights, reward)
        shown = history.current.insights
        assert history.renew(insights) == (insights not in ((), shown))
        assert history.current.insights == (insights or shown)


def test_the_question_shows_what_worked_and_what_failed() -> None:
    """The model would have nothing to learn from."""
    best = [Candidate(number, "m1", f"idea {number}", "", float(number)) for number in range(5)]
    failures = [Failure(f"bad {number}", "raised: name 'x' is not defined") for number in range(5)]
    question = reflection(TASK, Context(1, ("Look ahead.",)), best, failures)
    for shown in ("idea 0", "idea 2", "bad 0 (raised: name 'x' is not defined)", "- Look ahead.", TASK.description):
        assert shown in question
    assert "idea 3" not in question
    assert "failed" not in reflection(TASK, Context(), best, [])


@pytest.mark.parametrize("name", ["i1", "e1", "e2", "m1", "m2"])
@pytest.mark.parametrize("prefill", ["none", "signature", "suggestion"])
def test_every_operator_shows_the_insights(name: str, prefill: str) -> None:
    """Part of the search would not learn from them."""
    operator = search_operators(TASK, prefill=prefill)[name]
    population = [Candidate(0, "seed", "An idea.", TASK.seeds[0].code, 1.0)]

    def prompt(*insights: str) -> str:
        situation = Situation(population, 0, np.random.default_rng(1), insights=insights)
        return operator.ask(1, situation)[0].prompt

    assert "Keep in mind:\n- Look ahead.\n- Be quick.\n" in prompt("Look ahead.", "Be quick.")
    assert prompt("Look ahead.").replace("Keep in mind:\n- Look ahead.\n", "") == prompt()
