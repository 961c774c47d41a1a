"""What is said before a search, and which settings are refused."""

from __future__ import annotations

from typing import Any

import pytest
from test_session import settings
from test_trial import facts

from eoh_esopt.hosts.plan import explain
from eoh_esopt.hosts.settings import settings_of
from operators.errors import UserError


def asked(**changes: Any) -> Any:
    given = {name: value for name, value in changes.items() if name not in _OWN}
    own = {name: value for name, value in changes.items() if name in _OWN}
    return settings_of(facts(operators=("e1", "m1"), drawn={"e1": 2.0, "m1": 2.0}), **{**_OWN, **own}, given=given)


_OWN: dict[str, Any] = {
    "model": "scripted",
    "backend": "transformers",
    "method": None,
    "schedule": "host",
    "evaluator": "sandbox",
    "budget": None,
    "budget_unit": "attempts",
    "output": None,
}


def lines(**changes: Any) -> str:
    shown = facts(operators=("e1", "m1"), drawn={"e1": 2.0, "m1": 2.0}, generations=changes.pop("generations", 20))
    return "\n".join(explain(shown, asked(**changes)))


def test_rhythm_of_the_hosts_schedule_is_told() -> None:
    """Without it nobody knows why the model moves once in five generations only."""
    told = lines(directions=10)
    assert "from m1 about once in 5 generations" in told
    assert "WARNING" not in told


def test_schedule_that_cannot_learn_is_a_warning() -> None:
    """Without it a user pays for a search in which nothing can be learnt."""
    told = lines(directions=10, generations=4)
    assert "WARNING" in told
    assert "schedule='paper'" in told


def test_batches_of_the_papers_schedule_are_told() -> None:
    """Without it the cost of the schedule comes as a surprise."""
    told = lines(schedule="paper", directions=5, samples_per_direction=2, generations=3)
    assert "e1 x 4, m1 x 10" in told
    assert "42 candidates" in told


def test_what_is_not_promised_is_told() -> None:
    """Without it a user of the host's evaluator expects time limits that hold."""
    assert "not promised" in lines(evaluator="host")


def test_weights_that_stay_are_told() -> None:
    """Without it a user of an endpoint believes that its model learns."""
    endpoint = asked(backend="openai", base_url="http://127.0.0.1:1")
    assert endpoint.run.method == "eoh"
    assert any("weights stay as they are" in line for line in explain(facts(), endpoint))


def test_budget_is_told_with_its_unit() -> None:
    """Without it it stays open what a number limits."""
    assert "ends after 30 model calls" in lines(budget=30, budget_unit="model_calls")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"population": 5}, "Fake's to set"),
        ({"problem": "tsp"}, "Fake's to set"),
        ({"co_evolve": True}, "Fake's to set"),
        ({"sigm": 0.1}, "Did you mean 'sigma'"),
        ({"max_new_token": 9}, "Did you mean 'max_new_tokens'"),
        ({"nonsense": 1}, "no setting 'nonsense'"),
        ({"directions": 1}, "at least 2 directions"),
        ({"directions": "ten"}, "wrong type"),
        ({"temperature": -1}, "temperature"),
        ({"prefill": "suggestion"}, "Unknown prefill"),
        ({"method": "sample"}, "Unknown method"),
        ({"budget_unit": "hours"}, "Unknown budget_unit"),
        ({"budget": -3}, "at least 1"),
        ({"backend": "openai", "base_url": "http://x", "method": "esopt-eoh"}, "backend"),
        ({"servers": "http://127.0.0.1:1"}, "servers"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, Any], words: str) -> None:
    """Without it a mistake is ignored, or shows as an error somewhere else."""
    with pytest.raises(UserError) as error:
        asked(**changes)
    assert words in str(error.value)
    assert "--" not in str(error.value), "options of the command line are no arguments of attach()"


def test_sampling_may_be_given_by_its_parts() -> None:
    """Without it users have to import a class to shorten replies."""
    run = asked(max_new_tokens=77, temperature=0.5).run
    assert (run.sampling.max_new_tokens, run.sampling.temperature, run.sampling.top_p) == (77, 0.5, 0.95)


def test_replies_of_small_models_are_begun_where_that_is_possible() -> None:
    """Without it small models write prose; with it elsewhere, programs of several functions would lose all but one."""
    assert settings().run.prefill == "signature"
    assert asked().resolved(asked().run.resolved(7_000_000_000), facts()).run.prefill == "none"
    assert asked().resolved(asked().run.resolved(1), facts(arguments=None)).run.prefill == "none"


def test_limit_of_a_host_cuts_what_is_told_and_the_schedule_of_sigma() -> None:
    """LLM4AD ends on its samples: a search would stop with sigma still large, after fewer updates than were told."""
    shown = facts(operators=("e1", "m1"), drawn={"e1": 2.0, "m1": 2.0}, generations=20, limit=30)
    paper = asked(schedule="paper", directions=4)
    assert paper.generations(shown) == 4, "30 candidates are 3 generations of 8 and a part of one"
    assert "4 generations of e1 x 4, m1 x 4" in "\n".join(explain(shown, paper))
    assert "30 candidates and the start" in "\n".join(explain(shown, paper))
    assert asked().generations(shown) == 8
    assert asked().generations(facts(generations=20)) == 20
